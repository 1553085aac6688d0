"""What `rlaxes` does, a file for each kind of command; `harness.cli` puts them together."""
