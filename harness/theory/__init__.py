"""Closed formulas of the module: memory budget, pipeline, stragglers, effective sample size, checkpoint interval."""
