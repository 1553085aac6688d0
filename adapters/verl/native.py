"""verl's own figures, from the JSON lines of its `file` logger (verl/utils/tracking.py FileLogger).

verl opens that file anew in each attempt, so each attempt has a file of its own (`log_file`). A line is
`{"step": label, "data": {key: value}}`, and what the label counts depends on the mode. The V1 trainers and
`one_step_off` write one line a generated batch, with all of its optimizer steps. `fully_async` labels by weight version
and writes two lines a version: the rollouter's, and the trainer's. The trainer's line is written before the update
that led to the publication is added, so it ends one update earlier, the last update of a run is in no line, and with
a publication after each update the first version has no line of the trainer.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.execute.attempts import Attempts

Figure = tuple[int | None, str, float]
FOLDER = Path("verl")
PREFIX = "timing_s/"
OF_THE_TRAINER = "training/global_step"
"""A key that every line of a trainer has, and no line of a rollouter."""
