"""Hands work to Hydra's launchers: submitit (Slurm, or processes of this machine) and Ray."""
