"""verl, the real package: a registered trainer, engine and agent loop, a worker extension; no fork, no file patched."""
