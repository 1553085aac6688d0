"""PRIME-RL: known, mapped and read, not run: an adapter without a driver."""
