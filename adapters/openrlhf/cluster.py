"""Ray on this machine, as large as a cell needs it, under a folder of its own."""

import functools
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapters.openrlhf.shape import Shape
from harness.probe.scratch import scratch_folder

OBJECT_STORE_BYTES = 128 << 20
# Without a word, Ray's memory monitor kills an actor where the machine is short of memory, whoever took it; the harness
# holds a cell to its own limit.
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}
START_SECONDS = 240.0
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
    import ray

    _tell_ports()
    _wait_longer()
    shutil.rmtree(folder, ignore_errors=True)
    common: dict[str, Any] = {"include_dashboard": False, "log_to_driver": True, "configure_logging": False}
    common |= {"num_cpus": cores, "num_gpus": devices, "object_store_memory": OBJECT_STORE_BYTES}
    ray.init(_temp_dir=str(folder), _metrics_export_port=_free_port(), **common)


def _wait_longer() -> None:
    """Ray gives its raylet half a minute to say that it is there, and has no setting for it: each question is asked
    until it is answered."""
    from ray._private import services

    asked = services.get_node

    @functools.wraps(asked)
    def get_node(*args: Any, **kwargs: Any) -> Any:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return asked(*args, **kwargs)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    services.get_node = get_node


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
