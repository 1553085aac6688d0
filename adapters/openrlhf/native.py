"""OpenRLHF's own figures, from the event files that its TensorBoard logger writes, one folder an attempt.

Its log line `Global step N: {...}` holds the same, but reaches us through Ray, which shortens what repeats. Event files
are written at the end of each turn (`pins.time_loop`), so that an attempt that was killed keeps what it had logged.
"""

import math
from pathlib import Path

from adapters.openrlhf.events import read_scalars
from adapters.openrlhf.settings import EVENTS, FOLDER, updates_per_batch
from harness.execute.cell import Cell

Figure = tuple[int | None, str, float]
PREFIX = "train/"


def native_figures(cell_dir: Path) -> list[Figure]:
    """Every number that OpenRLHF logged: (last optimizer step of its global step, counted from 0; its key; value).

    Its global steps count generated batches from 1. What a later attempt said of a step takes the place of what an
    earlier one said of it.
    """
    attempts = sorted((cell_dir / FOLDER / EVENTS).glob("attempt_*"), key=lambda path: int(path.name.split("_")[1]))
    if not attempts:
        return []
    updates = updates_per_batch(Cell.read(cell_dir).task)
    said: dict[tuple[int, str], float] = {}
    for folder in attempts:
        for file in sorted(folder.glob("events.out.tfevents.*")):
            for step, tag, value in read_scalars(file):
                if tag.startswith(PREFIX) and math.isfinite(value):
                    said[step * updates - 1, tag.removeprefix(PREFIX)] = value
    return [(step, key, value) for (step, key), value in sorted(said.items())]
