"""`pytest tests/conformance --adapter NAME[,NAME]`: what every adapter has to hold, run for real on a small task."""

from pathlib import Path

import pytest

from tests.conformance.cells import KitCell, KitRun, covering, run_kit


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    adapters = metafunc.config.getoption("--adapter").split(",")
    if "cell" in metafunc.fixturenames:
        cells = [(adapter, cell) for adapter in adapters for cell in covering(adapter)]
        ids = [f"{adapter}-{cell}" for adapter, cell in cells]
        metafunc.parametrize(("adapter", "cell"), cells, ids=ids, scope="session")
    elif "adapter" in metafunc.fixturenames:
        metafunc.parametrize("adapter", adapters, scope="session")


class Bench:
    """Runs each cell once, all cells of an adapter in one output folder: each but the first finds it used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[tuple[str, KitCell], KitRun] = {}

    def run(self, adapter: str, cell: KitCell) -> KitRun:
        """The run of a cell. The last one of an adapter finds the leavings of its first in its own directory."""
        if (adapter, cell) not in self._runs:
            cells = covering(adapter)
            dirt = self.run(adapter, cells[0]).directory if cell == cells[-1] != cells[0] else None
            self._runs[adapter, cell] = run_kit(adapter, self._folder / adapter, cell.words, dirt)
        return self._runs[adapter, cell]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("conformance"))


@pytest.fixture
def run(bench: Bench, adapter: str, cell: KitCell) -> KitRun:
    """The run of one of the covering cells."""
    return bench.run(adapter, cell)


@pytest.fixture
def plain(bench: Bench, adapter: str) -> KitRun:
    """The run of the adapter's plainest cell."""
    return bench.run(adapter, covering(adapter)[0])
