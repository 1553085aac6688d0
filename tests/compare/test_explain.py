from dataclasses import replace

import pytest

from harness.compare.explain import explained_by
from harness.compare.gates import PART, STEP
from harness.compare.judgement import Judgement
from harness.compare.results import CellResult
from tests.compare.judged_cells import MEMORY, STEPS, cell, values


def judged(measure: str = STEP, variant: str = "") -> Judgement:
    return Judgement("new", "pin", "colocated_sync", "free", measure, variant, "s", "lower", "worse")


def cells(**slower: float) -> list[CellResult]:
    return [cell("new", repeat, values(1.0, slower)) for repeat in range(3)]


def test_the_stage_that_moved_most_the_same_way_with_its_share() -> None:
    found = explained_by(judged(), cells(decode=1.5, forward_backward=1.25, prefill=0.5), cells())
    assert found is not None
    assert (found.stage, found.seconds) == ("decode", pytest.approx(0.2))
    assert found.share == pytest.approx(0.2 / (0.2 + 0.1 - 0.05)), "another stage made up for some of it"


def test_of_a_part_only_its_own_stages_are_asked() -> None:
    found = explained_by(judged(PART, "train"), cells(decode=3.0, forward_backward=1.25), cells())
    assert found is not None
    assert (found.stage, found.share) == ("forward_backward", pytest.approx(1.0))


def test_faster_is_explained_by_what_got_faster() -> None:
    found = explained_by(judged(), cells(decode=0.5, forward_backward=1.1), cells())
    assert found is not None
    assert (found.stage, found.seconds) == ("decode", pytest.approx(-0.2))


def test_time_in_no_span_is_a_stage_of_its_own() -> None:
    lazy = [
        replace(
            one,
            values=[
                replace(v, numerator=0.5 * STEPS)
                if v.tag == "unattributed_share"
                else replace(v, value=1.46)
                if v.tag == STEP
                else v
                for v in one.values
            ],
        )
        for one in cells()
    ]
    found = explained_by(judged(), lazy, cells())
    assert found is not None
    assert (found.stage, found.seconds, found.share) == ("unattributed", pytest.approx(0.46), pytest.approx(1.0))


def test_a_stage_that_only_one_has_and_a_figure_without_stages_explain_nothing() -> None:
    without = [replace(one, values=[v for v in one.values if v.variant != "decode"]) for one in cells()]
    assert explained_by(judged(), cells(decode=1.5), without) is None
    assert explained_by(judged(MEMORY), cells(decode=1.5), cells()) is None
    assert explained_by(judged(), cells(), cells()) is None
