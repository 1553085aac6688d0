"""What OpenRLHF needs to run without a GPU; a run on GPUs loads none of it."""
