"""A child process that must not outlive the harness."""

import os
import threading
import time


def exit_with_parent(poll_seconds: float = 1.0) -> None:
    """Start a thread that ends this process once the process that started it is gone (killed, say)."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(poll_seconds)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="exit-with-parent").start()
