from typing import Any

import pytest

from harness.contract.axes import AXES
from harness.report.axes import Declared, axes_of, contradicts
from harness.report.observed import Observation


def _facts(**axis: Any) -> dict[str, Any]:
    return {"trl": {"version": "1.16.0", "axes": {"synchrony": {"declared": "synchronous", "source": "docs", **axis}}}}


def _seen(value: str | None, layout: str = "colocated_sync", reason: str | None = None) -> dict[str, list[Observation]]:
    return {"trl": [Observation("synchrony", layout, value, "spans: stage", reason)]}


def _synchrony(facts: dict[str, Any], seen: dict[str, list[Observation]]) -> Any:
    return next(axis for axis in axes_of(facts, seen) if axis.axis == "synchrony")


def test_every_axis_has_a_row_and_a_reason_where_nothing_shows_it() -> None:
    axes = axes_of(_facts(), {})
    assert [axis.axis for axis in axes] == list(AXES)
    assert all(axis.measured is None and axis.reason for axis in axes)
    assert next(axis.reason for axis in axes if axis.axis == "abstraction") == "no ledger shows this axis"


def test_declared_and_measured_both_stand_where_they_differ() -> None:
    axis = _synchrony(_facts(), _seen("asynchronous: overlap 30 %"))
    assert (axis.declared, axis.measured, axis.differs) == ("synchronous", "asynchronous: overlap 30 %", True)


@pytest.mark.parametrize(
    ("axis", "declared", "measured", "expected"),
    [
        ("synchrony", "synchronous; an experimental asynchronous trainer exists", "asynchronous: x", False),
        ("synchrony", "asynchronous", "synchronous: x", True),
        ("placement", "colocated or disaggregated", "disaggregated: x", False),
        ("placement", "anywhere", "colocated: x", False),
        ("queue", "none", "at most 3 records deep", False),
        ("synchrony", None, "synchronous", False),
    ],
)
def test_contradiction(axis: str, declared: str | None, measured: str, expected: bool) -> None:
    assert contradicts(axis, Declared(declared, (), None, None, None), measured) is expected


@pytest.mark.parametrize(
    ("values", "measured", "expected"),
    [
        (("synchronous",), "asynchronous: x", True),
        (("synchronous", "fully_asynchronous"), "asynchronous: x", False),
        (("one_step_off",), "asynchronous: x", False),
        (("one_step_off", "partial_rollout"), "synchronous: x", True),
    ],
)
def test_a_contradiction_is_to_the_values_and_not_to_the_words(
    values: tuple[str, ...], measured: str, expected: bool
) -> None:
    declared = Declared("synchronous or asynchronous, as one likes", values, None, None, None)
    assert contradicts("synchrony", declared, measured) is expected


def test_values_reach_the_report() -> None:
    assert _synchrony(_facts(values=["synchronous"]), {}).values == ["synchronous"]


def test_a_value_of_another_version_is_stale() -> None:
    assert _synchrony(_facts(version="1.15.0"), {}).stale == "it speaks of 1.15.0, the pin is 1.16.0"
    assert _synchrony(_facts(), {}).stale is None


def test_a_value_older_than_the_pin_is_stale() -> None:
    facts = _facts(date="2026-01-01")
    facts["trl"]["pinned"] = "2026-06-01"
    assert "2026-01-01" in _synchrony(facts, {}).stale


def test_layouts_that_do_not_agree_are_both_said() -> None:
    seen = _seen("synchronous: a")
    seen["trl"] += _seen("asynchronous: b", layout="disaggregated_async")["trl"]
    axis = _synchrony(_facts(), seen)
    assert axis.measured == "colocated sync: synchronous: a; disaggregated async: asynchronous: b"
    assert axis.differs
