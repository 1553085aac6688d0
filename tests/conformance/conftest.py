"""`pytest tests/conformance --adapter NAME`: what every adapter has to hold, run for real on a small task."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.contract import CellLedger, read_cell
from harness.execute.run_folder import MANIFEST
from harness.execute.session import choices_of, run_session

SMALL = ["task.steps=4", "task.warmup_steps=1", "task.prompts_per_batch=2", "task.group_size=4", "model=tiny"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "adapter" in metafunc.fixturenames:
        metafunc.parametrize("adapter", metafunc.config.getoption("--adapter").split(","), scope="session")


class SmallRun:
    """One finished run of one cell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        self.row: dict[str, Any] = self.manifest["cells"][0]

    @property
    def ledger(self) -> CellLedger:
        return read_cell(self.folder / "ledger", self.row["cell_id"])


def run_small(adapter: str, output: Path, *words: str) -> SmallRun:
    """Run one small cell of `adapter` for real."""
    settings = [f"adapter={adapter}", f"output={output}", *SMALL, *words]
    folder = run_session(choices_of(settings, single=True), Console(stderr=True))
    assert (folder / MANIFEST).exists()
    return SmallRun(folder)


@pytest.fixture(scope="session")
def small_run(adapter: str, tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    """The small run that most checks look at."""
    return run_small(adapter, tmp_path_factory.mktemp(adapter))
