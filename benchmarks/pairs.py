"""Two cells run in turn (A B B A ...), and the ratio of their training times pair by pair."""

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.errors import SystemFailure
from harness.execute.compose import Choice, compose_choices
from harness.execute.session import run_session


def choice(label: str, words: Sequence[str]) -> Choice:
    """One cell under a label of its own, from settings as on the command line."""
    return Choice(label, compose_choices(words)[0].config)


@contextmanager
def ran_all(choices: Sequence[Choice]) -> Iterator[Path]:
    """The run folder of cells that were run in turn; thrown away at the end.

    Raises:
        SystemFailure: a cell did not end well, so there is nothing to compare.
    """
    with tempfile.TemporaryDirectory() as output:
        for side in choices:
            side.config["output"] = output
        run = Path(run_session(choices, Console(stderr=True)))
        if failed := [cell for cell in _cells(run) if cell["status"] != "ok"]:
            raise SystemFailure(f"{failed[0]['cell_id']}: {failed[0]['reason']}")
        yield run


def ratios(first: Choice, second: Choice) -> list[float]:
    """Training seconds of `first` over those of `second`, a ratio a pair. Raises SystemFailure as `ran_all` does."""
    with ran_all([first, second]) as run:
        return ratios_of(run, first, second)


def ratios_of(run: Path, first: Choice, second: Choice) -> list[float]:
    """See `ratios`, of a run that is there."""
    cells = _cells(run)
    seconds = {(cell["adapter"], cell["repeat"]): cell["result"]["train_seconds"] for cell in cells}
    repeats = sorted({cell["repeat"] for cell in cells})
    return [seconds[first.adapter, repeat] / seconds[second.adapter, repeat] for repeat in repeats]


def _cells(run: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["cells"]
    return cells


def show(name: str, values: Sequence[float], wanted: str) -> None:
    """One line: median, range, number of pairs, and what the project wants it to be."""
    middle = statistics.median(values)
    spread = f"median of {len(values)} pairs, {min(values):.3f} to {max(values):.3f}"
    print(f"{name}: {middle:.3f} ({spread}); wanted: {wanted}")
