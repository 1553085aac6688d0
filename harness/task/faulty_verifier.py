"""The verifier's own process in a drill: `python -m harness.task.faulty_verifier BUNDLE SECONDS ROLE DIRECTORY`.

It scores as ever, and at the fault's time raises, hangs or dies in the middle of a batch: what a framework then does is
what it does for any verifier that fails. The same for every adapter that starts its verifier with `start_verifier`.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.probe.faults import Faults
from harness.task.bundle import Bundle
from harness.task.problem import Problem, Scorer
from harness.task.verifier import WORKER, Verifier
from harness.task.verify_worker import main

POINT = "verifier.score"


def start_verifier(cell: Mapping[str, Any], bundle: Bundle, role: str = "verifier-0") -> Verifier:
    """A running verifier of a cell (the content of its `cell.json`), with the task's limit for each completion; one
    that will fail where the cell's drill says so. See `Verifier.start`."""
    faulty = any(fault["point"] == POINT for fault in cell["fault"].get("faults", ()))
    told = (__name__, role, str(cell["directory"])) if faulty else WORKER
    return Verifier.start(bundle, cell["task"]["verifier_timeout_s"], told)


def breaking(scorer: Scorer, faults: Faults) -> Scorer:
    """The same rule, with the point `verifier.score` passed before each completion, canaries included."""

    def score(problem: Problem, text: str) -> Any:
        faults.at(POINT)
        return scorer(problem, text)

    return score


if __name__ == "__main__":
    bundle_path, seconds, role, directory = sys.argv[1:]
    broken = Faults.of(json.loads(Path(directory, "cell.json").read_text(encoding="utf-8")), role)
    main(bundle_path, float(seconds), lambda scorer: breaking(scorer, broken))
