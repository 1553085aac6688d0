"""The A/A test: what it shows of a machine, and when it voids a verdict or stops a plan."""

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.compare.gates import STATED_MARGIN, STEP
from harness.compare.null_test import NullTest
from harness.compare.results import CellResult
from tests.compare.judged_cells import MEMORY, arm, cell


def null_of(first: list[CellResult], second: list[CellResult], **changes: Any) -> NullTest:
    return NullTest.of(first, second, **{"adapter": "reference", "max_noise": 0.1} | changes)


def test_a_quiet_machine_fails_nothing_and_shows_its_noise_and_margin() -> None:
    found = null_of(arm("null-a", 1, 40, 0.01), arm("null-b", 2, 40, 0.01))
    assert (found.stopped, found.failed, found.pairs, found.adapter) == (None, None, 40, "reference")
    assert found.noise == pytest.approx(0.01 * 0.578, rel=0.3), "a step is the sum of stages that vary on their own"
    assert set(found.margin) == {
        STEP,
        MEMORY,
        *(f"t_seq_part_seconds[{part}]" for part in ("rollout", "train", "sync")),
    }
    assert found.margin_of(STEP) == STATED_MARGIN


def test_what_its_sides_differ_by_is_the_margin_and_past_it_it_has_failed() -> None:
    found = null_of(arm("null-a", 1), arm("null-b", 2, slower={"decode": 1.2}))
    assert found.margin_of(STEP) == pytest.approx(0.08, abs=0.01)
    assert found.margin_of(MEMORY) == STATED_MARGIN
    assert found.stopped is None
    assert found.failed == "one thing measured as two differs in step_seconds by +7.9%"


def test_above_the_noise_that_is_allowed_the_plan_stops() -> None:
    found = null_of(arm("null-a", 1, noise=0.1), arm("null-b", 2, noise=0.1), max_noise=0.02)
    assert found.stopped is not None
    assert "more than the 2.0% that is allowed" in found.stopped
    assert found.failed == found.stopped


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_fewer_than_three_pairs_show_nothing(ended: int) -> None:
    lost = {"status": "failed", "cause": "infrastructure", "reason": "disk full"}
    second = [one if one.repeat < ended else cell("null-b", one.repeat, **lost) for one in arm("null-b", 2)]
    found = null_of(arm("null-a", 1), second)
    assert found.stopped == f"{ended if ended > 1 else 0} pairs of the A/A test ended well, and it takes 3"


def test_other_work_on_the_machine_fails_it_and_stops_nothing() -> None:
    second = arm("null-b", 2)
    second[1] = replace(second[1], foreign_cores=0.9)
    found = null_of(arm("null-a", 1), second)
    assert found.stopped is None
    assert found.failed is not None
    assert "other processes used 0.9 cores during null-b" in found.failed
    assert null_of(arm("null-a", 1), second, foreign_limit=1.0).failed is None


def test_it_goes_through_the_manifest() -> None:
    found = null_of(arm("null-a", 1), arm("null-b", 2), cells=["null-a.colocated_sync.free.r0"])
    told = json.loads(json.dumps(found.as_dict()))
    assert NullTest.from_dict(told) == found
    planned = {key: told[key] for key in ("adapter", "layout", "track", "pairs", "cells", "max_noise")}
    assert NullTest.from_dict(planned | {"noise": None, "margin": {}, "stopped": None}).noise is None
