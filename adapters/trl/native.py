"""TRL's own figures, from the `trainer_state.json` that it writes itself (transformers.TrainerState.log_history)."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STATE_FILE = Path("trl") / "trainer_state.json"
Figure = tuple[int | None, str, float]


def native_figures(cell_dir: Path) -> list[Figure]:
    """Every number that TRL logged: (optimizer step from 0, TRL's key, value). Its last entry sums up the whole run and
    has no step. TRL logs no value where it has none, so a key may be absent in a step.
    """
    path = cell_dir / STATE_FILE
    if not path.exists():
        return []
    history = json.loads(path.read_text(encoding="utf-8"))["log_history"]
    return [figure for entry in history for figure in _figures(entry)]


def _figures(entry: dict[str, Any]) -> Iterator[Figure]:
    """TRL counts steps from 1, after the step; the contract counts them from 0."""
    step = None if "train_runtime" in entry else int(entry["step"]) - 1
    for key, value in entry.items():
        if key != "step" and isinstance(value, int | float) and math.isfinite(value):
            yield step, key, float(value)
