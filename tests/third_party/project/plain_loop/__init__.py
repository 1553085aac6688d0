"""A policy-gradient loop in plain torch and transformers: an adapter of rlaxes in a package of its own."""
