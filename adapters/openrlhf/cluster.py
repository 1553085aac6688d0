"""Ray on this machine, as large as a cell needs it, under a folder of its own."""

import functools
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from adapters.openrlhf.shape import Shape
from harness.probe.scratch import scratch_folder

OBJECT_STORE_BYTES = 128 << 20
# Without a word, Ray's memory monitor kills an actor where the machine is short of memory, whoever took it; the harness
# holds a cell to its own limit.
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}
STARTS = 4
PLACES = 2
"""Logical cores beside one for each engine and each trainer: OpenRLHF's controllers, queues and locks each take one
while they are placed, and none after."""


@contextmanager
def ray_running(cell: Mapping[str, Any], shape: Shape, devices: int) -> Iterator[None]:
    """Ray with `devices` logical GPUs, which on a CPU are names only; ended on the way out."""
    import ray

    os.environ.update(ENVIRONMENT)
    folder = scratch_folder(cell["directory"])
    _start(folder, devices + shape.engines + PLACES, devices)
    try:
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, cores: int, devices: int) -> None:
    """Start Ray, and again where a busy machine kept it from being up within the half minute that it gives itself."""
    import psutil
    import ray

    _tell_ports()
    common: dict[str, Any] = {"include_dashboard": False, "log_to_driver": True, "configure_logging": False}
    common |= {"num_cpus": cores, "num_gpus": devices, "object_store_memory": OBJECT_STORE_BYTES}
    for left in reversed(range(STARTS)):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            ray.init(_temp_dir=str(folder), _metrics_export_port=_free_port(), **common)
        except Exception as error:
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            if left == 0 or "timed out during startup" not in str(error):
                raise
        else:
            return


def _tell_ports() -> None:
    """Choose the ports of Ray's agents. Where Ray lets them choose, its raylet waits 15 seconds for each to say which
    one it took, and then ends; on a busy machine an agent takes longer to start (ray-project/ray, issue 65983)."""
    from ray._private import parameter

    built = parameter.RayParams.__init__

    @functools.wraps(built)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        built(self, *args, **kwargs)
        self.metrics_agent_port = _free_port()
        self.runtime_env_agent_port = _free_port()
        self.dashboard_agent_listen_port = _free_port()

    parameter.RayParams.__init__ = init


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
