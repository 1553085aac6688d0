"""What only a run on GPUs needs. Rendered, and checked against OpenRLHF's own command line; no such run was made."""
