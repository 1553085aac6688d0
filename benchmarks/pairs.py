"""Two cells run in turn (A B B A ...), and the ratio of their training times pair by pair."""

import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from harness.errors import SystemFailure
from harness.execute.compose import Choice, compose_choices
from harness.execute.session import run_session


def choice(label: str, words: Sequence[str]) -> Choice:
    """One cell under a label of its own, from settings as on the command line."""
    return Choice(label, compose_choices(words)[0].config)


def ratios(first: Choice, second: Choice) -> list[float]:
    """Training seconds of `first` over those of `second`, a ratio a pair, in a run folder that is thrown away.

    Raises:
        SystemFailure: a cell did not end well, so there is nothing to compare.
    """
    with tempfile.TemporaryDirectory() as output:
        for side in (first, second):
            side.config["output"] = output
        run = run_session([first, second], Console(stderr=True))
        cells = json.loads((Path(run) / "manifest.json").read_text(encoding="utf-8"))["cells"]
    failed = [cell for cell in cells if cell["status"] != "ok"]
    if failed:
        raise SystemFailure(f"{failed[0]['cell_id']}: {failed[0]['reason']}")
    seconds = {(cell["adapter"], cell["repeat"]): cell["result"]["train_seconds"] for cell in cells}
    repeats = sorted({cell["repeat"] for cell in cells})
    return [seconds[first.adapter, repeat] / seconds[second.adapter, repeat] for repeat in repeats]


def show(name: str, values: Sequence[float], wanted: str) -> None:
    """One line: median, range, number of pairs, and what the project wants it to be."""
    middle = statistics.median(values)
    spread = f"median of {len(values)} pairs, {min(values):.3f} to {max(values):.3f}"
    print(f"{name}: {middle:.3f} ({spread}); wanted: {wanted}")
