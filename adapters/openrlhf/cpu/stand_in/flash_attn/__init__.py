"""Stands in for the package of GPU kernels, which OpenRLHF imports whatever attention it is told to use."""

from typing import Any, NoReturn


def absent(*_: Any, **__: Any) -> NoReturn:
    """Raise RuntimeError: a run without packing and ring attention calls no kernel."""
    raise RuntimeError("flash_attn is not installed: it needs a GPU")
