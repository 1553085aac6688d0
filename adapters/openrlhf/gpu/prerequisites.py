"""What the lock for GPUs cannot hold."""

import importlib.util
import sys

from harness.errors import PrerequisiteError

FLASH_ATTENTION = "flash-attn==2.8.3"
"""As OpenRLHF 0.11.2 pins it; published as source only, for a CUDA compiler."""


def check_prerequisites() -> None:
    """Whether this environment has what OpenRLHF imports on a GPU whatever it is asked for.

    Raises:
        PrerequisiteError: with the command that mends it.
    """
    if importlib.util.find_spec("flash_attn") is None:
        raise PrerequisiteError(
            "OpenRLHF imports flash-attn whatever it is asked for, and it is not in this environment: "
            f"uv pip install --python {sys.executable} --no-build-isolation {FLASH_ATTENTION} (needs nvcc)"
        )
