"""The processes that Ray starts for a cell."""

import os
from pathlib import Path

import pytest

from adapters.reference.cluster import Cluster
from adapters.reference.settings import Settings
from harness.execute.launch import child_environment
from tests.adapters.reference.in_env.cells import bundle, cell

__all__ = ["bundle"]


class Worker:
    """An actor."""

    def niceness(self) -> int:
        """Of its process."""
        return os.getpriority(os.PRIO_PROCESS, 0)


def test_an_actor_is_as_nice_as_the_process_that_conducts(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in child_environment(tmp_path, tmp_path, {}, 1).items():
        if name.startswith("RAY_"):
            monkeypatch.setenv(name, value)
    cluster = Cluster(Settings.from_cell(cell(bundle, tmp_path, layout="disaggregated_sync")))
    try:
        worker = cluster.actor(Worker, "worker-0")
        assert cluster.result(worker.call("niceness")) == os.getpriority(os.PRIO_PROCESS, 0)
    finally:
        cluster.close()
