"""The verifier's own process in a drill: `python -m adapters.reference.faulty_verifier BUNDLE SECONDS ROLE`.

It scores as ever, and at the fault's time raises, hangs or dies in the middle of a batch: what the loop's side then
does is what it does for any verifier that fails. Standard library only.
"""

import json
import sys
from pathlib import Path
from typing import Any

from adapters.reference.faults import Faults
from adapters.reference.settings import Settings
from harness.task.bundle import Bundle
from harness.task.problem import Problem, Scorer
from harness.task.verifier import WORKER, Verifier
from harness.task.verify_worker import main

POINT = "verifier.score"


def start_verifier(settings: Settings, bundle: Bundle, role: str) -> Verifier:
    """A running verifier; one that will fail where the cell's drill says so."""
    faulty = any(fault["point"] == POINT for fault in settings.fault.get("faults", ()))
    told = (__name__, role, str(settings.directory)) if faulty else WORKER
    return Verifier.start(bundle, settings.verifier_timeout_s, told)


def breaking(scorer: Scorer, faults: Faults) -> Scorer:
    """The same rule, with the point `verifier.score` passed before each completion, canaries included."""

    def score(problem: Problem, text: str) -> Any:
        faults.at(POINT)
        return scorer(problem, text)

    return score


if __name__ == "__main__":
    bundle_path, seconds, role, directory = sys.argv[1:]
    cell = json.loads(Path(directory, "cell.json").read_text(encoding="utf-8"))
    broken = Faults(Settings.from_cell(cell), role)
    main(bundle_path, float(seconds), lambda scorer: breaking(scorer, broken))
