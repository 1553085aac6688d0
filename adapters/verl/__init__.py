"""verl, the real package: registered trainer, agent loop, reward function and worker extension; no fork, no file patched."""
