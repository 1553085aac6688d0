"""A cache, a shelf of packages and a uv that are the test's own; and cells that end before they start."""

from pathlib import Path
from typing import Any

import pytest

from harness.execute.cell import Cell
from harness.execute.plan import PlannedCell
from harness.execute.runner import Runner
from harness.execute.verdict import NO_MEMORY, Verdict
from tests.execute.small_wheel import Shelf, build_shelf


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The small package on a shelf that uv looks at, offline; environments go into the test's own folder.

    uv's own cache is the test's too: a test that edits installed files would edit the user's through hard links.
    """
    built = build_shelf(tmp_path / "shelf")
    monkeypatch.setenv("RLAXES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_FIND_LINKS", str(built.folder))
    monkeypatch.setenv("UV_OFFLINE", "1")
    return built


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cells of a run end at once, as `adapter.mode` says, and leave no ledger; the ids of those that were started.

    For tests of which cells a plan runs: what one does has tests of its own, and takes a second.
    """
    started: list[str] = []
    ends = {
        "ok": Verdict("ok"),
        "crash": Verdict("failed", "system", "RuntimeError: told to crash"),
        "oom": Verdict("failed", "system", f"{NO_MEMORY}MemoryError: told to"),
    }

    def start(self: Runner, planned: PlannedCell, cell: Cell) -> dict[str, Any]:
        started.append(planned.cell_id)
        return ends[planned.config["adapter"]["mode"]].as_dict()

    monkeypatch.setattr(Runner, "_start", start)
    return started
