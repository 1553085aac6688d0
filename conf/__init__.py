"""The Hydra groups of rlaxes."""
