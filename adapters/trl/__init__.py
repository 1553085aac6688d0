"""TRL's `GRPOTrainer`, the real package: subclass, callback and instance-level wraps, no fork and no file patched."""
