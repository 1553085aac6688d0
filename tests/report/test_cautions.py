from dataclasses import replace
from typing import Any

import pytest

from harness.report.cautions import cautions_of
from harness.report.model import ReportModel
from tests.report.reports import FIGURES, report, row

UNATTRIBUTED = next(figure for figure in FIGURES if figure[1] == "unattributed_share")
UNMODELLED: Any = ("integrity", "decoding_not_modelled", "x", "", "tokens/s", "lower")


def _calm() -> ReportModel:
    model = report()
    model.rows = [row("trl", UNATTRIBUTED, value=0.03)]
    model.fidelity = [f for f in model.fidelity if f.grade == "exact"]
    model.axes = [replace(axis, differs=False) for axis in model.axes]
    return model


def test_a_run_without_blemish_has_none() -> None:
    assert cautions_of(_calm()) == []


def test_an_unattributed_share_over_five_per_cent_is_named() -> None:
    model = _calm()
    model.rows = [row("trl", UNATTRIBUTED, value=0.071)]
    (caution,) = cautions_of(model)
    assert (caution.about, caution.text[:5]) == ("trl", "7.10 ")


def test_the_worst_comes_first() -> None:
    model = report()
    model.violations = [{"rule": "tokens_close", "table": "fates", "where": "x", "detail": "y"}]
    model.cells[0] |= {"status": "failed", "cause": "system", "reason": "out of memory"}
    model.rows = [row("trl", UNATTRIBUTED, value=0.2)]
    model.provenance = {"rlaxes": {"dirty": True}, "load": {"before": [3.0]}, "cores": 2}
    texts = [caution.about for caution in cautions_of(model)]
    assert texts[:3] == ["ledger check", "reference", "trl"]
    assert texts[-2:] == ["machine", "rlaxes"]


def test_failed_cells_of_one_reason_are_counted() -> None:
    model = _calm()
    for cell in model.cells[:4:2]:
        cell |= {"status": "failed", "cause": "system", "reason": "hung"}
    (caution,) = cautions_of(model)
    assert caution.text == "2 cells failed (system): hung."


@pytest.mark.parametrize(("repeats", "words"), [(1, "no interval"), (2, "wide"), (4, "wide")])
def test_few_repeats(repeats: int, words: str) -> None:
    model = report(repeats=repeats)
    assert any(words in caution.text for caution in cautions_of(model) if caution.about == "repeats")


def test_speeds_that_do_not_compare_are_said_once() -> None:
    model = _calm()
    model.rows = [row("trl", f, state="not comparable", reason="longer texts") for f in FIGURES[:3]]
    (caution,) = cautions_of(model)
    assert "longer texts" in caution.text


def test_a_count_that_should_be_zero() -> None:
    model = _calm()
    model.rows = [row("trl", UNMODELLED, value=value) for value in (12.0, 0.0)]
    (caution,) = cautions_of(model)
    assert caution.text.startswith("12 records sampled with a decoding")


def test_a_count_and_its_kinds_are_said_once() -> None:
    model = _calm()
    kinds = {"": 12.0, "top_k": 12.0, "min_p": 3.0}
    model.rows = [replace(row("trl", UNMODELLED, value=value), variant=kind) for kind, value in kinds.items()]
    (caution,) = cautions_of(model)
    assert caution.text.endswith("does not model (top k, min p 3).")


def test_a_load_that_is_not_of_the_run_itself() -> None:
    model = _calm()
    model.provenance = {"load": {"before": [0.1]}, "cores": 2}
    for cell, load in zip(model.cells, (0.1, 3.4, 2.1), strict=False):
        cell["load_before"] = [load, 0.0, 0.0]
    (caution,) = cautions_of(model)
    assert caution.text.startswith("1 of 10 cells began at a load above 3, up to 3.4")


def test_what_others_used_is_better_known_than_a_load() -> None:
    model = _calm()
    model.provenance = {"load": {"before": [9.0]}, "cores": 2}
    for cell in model.cells:
        cell |= {"load_before": [9.0, 9.0, 9.0], "foreign_cores": 0.1}
    assert cautions_of(model) == []
    model.cells[3]["foreign_cores"] = 1.74
    (caution,) = cautions_of(model)
    assert caution.text == "while 1 of 10 cells ran, others used more than 0.25 of the 2 cores, up to 1.7."


def test_a_cell_without_the_observer() -> None:
    model = _calm()
    model.cells[0]["observed"] = False
    (caution,) = cautions_of(model)
    assert "without the observer" in caution.text


DROPPED: Any = ("stages", "warmup_steps_dropped", "x", "", "tokens/s", "none")
BY_RULE: Any = ("stages", "warmup_steps_by_rule", "x", "", "tokens/s", "none")


NEVER = "not steady: its steps get 1.20% longer from each to the next"


@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        ([3, 3, 3, 9, 9], None),
        ([3, 3, 9, 7, 9], "in most repeats its steps were steady only later, from 9 on at the latest."),
        ([3, 3, None, 9, 9], "in most repeats its steps were steady only later."),
        ([3, 3, 3, None, None], None),
        ([3, 3, None, None, None], f"{NEVER}: its rates are those of this stretch of the run, and of no steady state."),
    ],
)
def test_a_warmup_that_was_too_short(repeats: list[float | None], said: str | None) -> None:
    model = _calm()
    known = [value for value in repeats if value is not None]
    found: Any = {"n": len(known), "reason": NEVER if len(known) < len(repeats) else None}
    by_rule = replace(row("trl", BY_RULE, **found), repeats=tuple(repeats))
    model.rows += [row("trl", DROPPED, value=3.0), by_rule]
    texts = [caution.text for caution in cautions_of(model)]
    assert len(texts) == (said is not None)
    assert all(text.endswith(said or "") for text in texts)
