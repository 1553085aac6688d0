"""verl's own figures, from the JSON lines of its `file` logger (verl/utils/tracking.py FileLogger).

verl opens that file anew in each attempt, so each attempt has a file of its own. A line is `{"step": label, "data":
{key: value}}`, and what the label counts depends on the mode. The V1 trainers and `one_step_off` write one line for the
optimizer steps of one train batch. `fully_async` labels by weight version and writes two lines a version: the
rollouter's, and the trainer's. The trainer's line is written before the update that led to the publication is added
(fully_async_trainer.py fit_step), so it ends one update earlier, the last update of a run is in no line, and where
each update is published, the first version has no line of the trainer.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.verl.asynchronous.pace import pace_of

Figure = tuple[int | None, str, float]
FOLDER = Path("verl")
OF_THE_TRAINER = "training/global_step"
"""A key of every line of a trainer, and of no line of a rollouter or a validation."""
DOUBLED = re.compile(r"^(?P<prefix>\w+/)(?P=prefix)")
_FILE = re.compile(r"metrics\.(?P<attempt>\d+)\.jsonl")


@dataclass(frozen=True)
class LogShape:
    """What a line's label means, which the settings decide.

    Attributes:
        steps_per_label: optimizer steps from one label to the next.
        late: optimizer steps before the label's last one at which a line of the trainer ends.
    """

    steps_per_label: int
    late: int = 0

    def last_step(self, label: int, of_trainer: bool) -> int:
        """The last optimizer step, from 0, that a line speaks of; negative where it speaks of none."""
        return label * self.steps_per_label - 1 - (self.late if of_trainer else 0)


def log_shape(cell: Mapping[str, Any]) -> LogShape:
    """What the lines of a cell's log speak of."""
    pace = pace_of(cell)
    return LogShape(pace.updates_per_sync, late=pace.updates_per_batch if pace.mode == "fully_async" else 0)


def log_file(attempt: int) -> Path:
    """Where verl logs an attempt, relative to the cell's folder: the value of VERL_FILE_LOGGER_PATH."""
    return FOLDER / f"metrics.{attempt}.jsonl"


def native_figures(cell_dir: Path, shape: LogShape) -> list[Figure]:
    """Every number that verl logged: (last optimizer step that it speaks of, verl's key, value), in their order.

    What a restart did again replaces what the attempt before said of the same steps. A number that verl had not (null
    in its file) and a line that a killed process left unfinished are left out; a prefix that verl writes twice
    (`timing_s/timing_s/param_sync`) is written once.
    """
    out: list[Figure] = []
    for path in _attempts(cell_dir / FOLDER):
        said = [figure for line in _lines(path) for figure in _figures(line, shape)]
        first = min((step for step, _, _ in said if step is not None), default=math.inf)
        out = [figure for figure in out if figure[0] is not None and figure[0] < first] + said
    return out


def _attempts(folder: Path) -> list[Path]:
    named = [(int(found["attempt"]), path) for path in folder.glob("*") if (found := _FILE.fullmatch(path.name))]
    return [path for _, path in sorted(named)]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for text in path.read_bytes().splitlines():
        try:
            yield json.loads(text)
        except ValueError:  # the process was killed while it wrote this line
            return


def _figures(line: dict[str, Any], shape: LogShape) -> Iterator[Figure]:
    step = shape.last_step(line["step"], OF_THE_TRAINER in line["data"])
    if step < 0:
        return
    for key, value in line["data"].items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield step, DOUBLED.sub(r"\g<prefix>", key), float(value)
