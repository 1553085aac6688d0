"""Scripts that make a bundle. They run in the reference environment's Python, never in the harness's process."""
