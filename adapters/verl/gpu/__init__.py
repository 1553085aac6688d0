"""What verl is told on GPUs: rendered, checked by its own configuration classes, never run; no CPU run imports it."""
