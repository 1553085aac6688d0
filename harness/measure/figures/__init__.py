"""The figures, by what they speak of; `harness.measure.catalogue` lists them all."""
