"""What TRL needs to run on GPUs only; a CPU run imports none of it."""
