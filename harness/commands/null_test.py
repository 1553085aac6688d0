"""How a command has the A/A test of its plan judged: measured from the ledgers, by the rule of `harness.compare`."""

from pathlib import Path
from typing import Any

from harness.compare.controls import foreign_limit
from harness.compare.null_test import NullTest
from harness.execute.null_plan import ARMS


def judge_null(run: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What the cells of the A/A test of a run say of the machine, for its manifest; see `run_session`."""
    from harness.report.measured import null_results

    arms, facts = null_results(run, manifest), manifest["null_test"]
    first, second = (arms[arm] for arm in ARMS)
    said = {"adapter": facts["adapter"], "max_noise": facts["max_noise"], "cells": facts["cells"]}
    return NullTest.of(first, second, **said, foreign_limit=foreign_limit(manifest)).as_dict()
