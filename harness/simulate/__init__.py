"""Event simulator of an RL loop: prompts, replicas, verifiers, queue, trainer, publication; no model runs in it."""
