"""Ray on this machine, as large as a cell needs it, under a folder of its own."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapters.openrlhf.shape import Shape

# Sockets lie below it, and a socket's path has 107 characters at most.
PREFIX = "rlx-o-"
OBJECT_STORE_BYTES = 128 << 20
STARTS = 4
PLACES = 2
"""Logical cores beside one for each engine and each trainer: OpenRLHF's controllers, queues and locks each take one
while they are placed, and none after."""


@contextmanager
def ray_running(cell: Mapping[str, Any], shape: Shape, devices: int) -> Iterator[None]:
    """Ray with `devices` logical GPUs, which on a CPU are names only; ended on the way out."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # By the cell's name, so that an attempt clears away what one that was killed left; short, for Ray's sockets.
    name = hashlib.sha256(str(cell["directory"]).encode()).hexdigest()[:8]
    folder = Path(tempfile.gettempdir(), f"{PREFIX}{name}")
    _start(folder, devices + shape.engines + PLACES, devices)
    try:
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, cores: int, devices: int) -> None:
    """Start Ray, and again where a busy machine kept it from being up within the half minute that it gives itself."""
    import ray

    common: dict[str, Any] = {"include_dashboard": False, "log_to_driver": True, "configure_logging": False}
    for left in reversed(range(STARTS)):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            ray.init(
                num_cpus=cores,
                num_gpus=devices,
                object_store_memory=OBJECT_STORE_BYTES,
                _temp_dir=str(folder),
                **common,
            )
        except Exception as error:
            ray.shutdown()
            if left == 0 or "timed out during startup" not in str(error):
                raise
        else:
            return
