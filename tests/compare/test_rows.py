import json
import math
from dataclasses import replace

import pytest

from harness.compare.api import compare_rows
from harness.compare.results import CellResult
from harness.compare.rows import JSON_KEYS, Row
from harness.measure.api import catalogue
from harness.measure.values import Value

SPEED, DECODE = "output_tokens_per_second", "decode"


def value(tag: str, number: float | None, variant: str = "", reason: str | None = None, absent: bool = False) -> Value:
    why = reason or ("no span" if number is None else None)
    return Value(tag, number, "u", "spans.t_end", 3, variant=variant, reason=why, absent=absent)


def cell(
    adapter: str, repeat: int, *values: Value, track: str = "free", length: float = 10.0, p95: float = 20.0
) -> CellResult:
    lengths = [value("completion_length", length), value("completion_length_p95", p95)]
    return CellResult(adapter, "colocated_sync", track, repeat, "ok", None, None, [*values, *lengths])


def failed(adapter: str, repeat: int, status: str = "failed") -> CellResult:
    return CellResult(adapter, "colocated_sync", "free", repeat, status, "system", "hung: no end within 60 s", [])


def row_of(rows: list[Row], adapter: str, name: str, track: str = "free") -> Row:
    return next(row for row in rows if (row.adapter, row.name, row.track) == (adapter, name, track))


def test_median_range_and_paired_ratio_over_repeats() -> None:
    ours = [cell("reference", repeat, value(SPEED, 10.0 + repeat)) for repeat in range(5)]
    theirs = [cell("trl", repeat, value(SPEED, 2 * (10.0 + repeat))) for repeat in range(5)]
    rows = compare_rows([*theirs, *ours])
    row = row_of(rows, "trl", SPEED)
    assert (row.value, row.low, row.high, row.n, row.state, row.direction) == (
        24.0,
        20.0,
        28.0,
        5,
        "measured",
        "higher",
    )
    assert (row.ratio, row.ratio_low, row.ratio_high) == (pytest.approx(2.0),) * 3
    assert row.pairs == 5
    assert row.detectable is not None
    assert row.repeats == (20.0, 22.0, 24.0, 26.0, 28.0)
    assert row_of(rows, "reference", SPEED).ratio is None


def test_the_order_of_cells_changes_nothing_and_adapters_stand_by_name() -> None:
    cells = [cell(name, repeat, value(SPEED, 1.0)) for name in ("verl", "areal", "trl") for repeat in (1, 0)]
    rows = compare_rows(cells)
    assert rows == compare_rows(cells[::-1])
    assert [row.adapter for row in rows if row.measure == SPEED] == ["areal", "trl", "verl"]
    tags = [kind.tag for kind in catalogue()]
    assert [tags.index(row.measure) for row in rows] == sorted(tags.index(row.measure) for row in rows)


@pytest.mark.parametrize(
    ("length", "p95", "state"),
    [(10.5, 20.0, "measured"), (10.6, 20.0, "not comparable"), (10.0, 18.9, "not comparable")],
)
def test_length_guard(length: float, p95: float, state: str) -> None:
    cells = [cell("reference", 0, value(SPEED, 10.0), value("reward", 0.5))]
    cells += [cell("trl", 0, value(SPEED, 20.0), value("reward", 0.5), length=length, p95=p95)]
    rows = compare_rows(cells)
    row = row_of(rows, "trl", SPEED)
    assert (row.state, row.value) == (state, 20.0)
    assert (row.ratio is None) == (row.reason is not None) == (state == "not comparable")
    assert row_of(rows, "reference", SPEED).state == "measured"
    assert row_of(rows, "trl", "reward").state == "measured", "only speeds depend on how long the texts are"


def test_length_guard_leaves_the_fixed_length_track_alone() -> None:
    cells = [cell("reference", 0, value(SPEED, 1.0), track="fixed_length")]
    cells += [cell("trl", 0, value(SPEED, 1.0), track="fixed_length", length=99.0)]
    assert row_of(compare_rows(cells), "trl", SPEED, "fixed_length").state == "measured"


def test_a_failed_repeat_is_told_beside_the_others() -> None:
    cells = [cell("trl", 0, value(SPEED, 4.0)), failed("trl", 1), cell("trl", 2, value(SPEED, 6.0))]
    row = row_of(compare_rows(cells), "trl", SPEED)
    assert (row.value, row.n, row.state, row.repeats) == (5.0, 2, "measured", (4.0, None, 6.0))
    assert row.reason == "repeat 1: failed (system): hung: no end within 60 s"


@pytest.mark.parametrize(("status", "state"), [("failed", "failed"), ("torn", "failed"), ("not_run", "not run")])
def test_an_adapter_that_never_ended_well_has_every_row_with_its_cause(status: str, state: str) -> None:
    rows = compare_rows([cell("reference", 0, value(SPEED, 1.0)), failed("trl", 0, status)])
    row = row_of(rows, "trl", SPEED)
    assert (row.state, row.value, row.n, row.low) == (state, None, 0, None)
    assert row.reason
    assert "hung" in row.reason


def test_what_a_failed_cell_left_counts_in_no_median() -> None:
    half_done = replace(failed("trl", 1), values=[value(SPEED, 99.0)])
    row = row_of(compare_rows([cell("trl", 0, value(SPEED, 4.0)), half_done]), "trl", SPEED)
    assert (row.value, row.n, row.repeats) == (4.0, 1, (4.0, None))


def test_not_measured_is_told_apart_from_an_absent_stage() -> None:
    absent = value("stage_seconds_p50", None, DECODE, "trains only", absent=True)
    cells = [cell("trl", 0, absent, value("stage_seconds_p50", None, "verifier"), value(SPEED, None))]
    rows = compare_rows(cells)
    assert row_of(rows, "trl", f"stage_seconds_p50[{DECODE}]").state == "absent stage"
    assert row_of(rows, "trl", "stage_seconds_p50[verifier]").state == "not measured"
    assert (row_of(rows, "trl", SPEED).state, row_of(rows, "trl", SPEED).reason) == ("not measured", "no span")


def test_a_member_of_a_family_that_only_the_other_has_carries_the_reason_of_the_family() -> None:
    cells = [cell("reference", 0, value("mismatch_mean", 0.1), value("mismatch_mean", 0.1, "1-8"))]
    cells += [cell("trl", 0, value("mismatch_mean", None, reason="no zero lag"))]
    row = row_of(compare_rows(cells), "trl", "mismatch_mean[1-8]")
    assert (row.state, row.reason) == ("not measured", "no zero lag")


def test_infinite_cost_is_shown_and_json_holds_it() -> None:
    cells = [cell("trl", repeat, value("cost_device_seconds", math.inf)) for repeat in range(2)]
    row = row_of(compare_rows(cells), "trl", "cost_device_seconds")
    assert (row.value, row.high) == (math.inf, math.inf)
    assert json.loads(json.dumps(row.as_dict(), allow_nan=False))["value"] == "Infinity"


def test_json_has_the_keys_that_the_issue_names() -> None:
    row = compare_rows([cell("trl", 0, value("stage_seconds_p50", 1.0, DECODE))])
    found = next(r for r in row if r.variant == DECODE).as_dict()
    assert tuple(found) == JSON_KEYS
    assert found["measure"] == "stage_seconds_p50[decode]"


def test_a_record_has_every_field_and_can_be_read_back() -> None:
    cells = [cell("trl", repeat, value("cost_device_seconds", number)) for repeat, number in enumerate((1.0, math.inf))]
    row = row_of(compare_rows(cells), "trl", "cost_device_seconds")
    stored = json.loads(json.dumps(row.as_record(), allow_nan=False))
    assert stored["repeats"] == [1.0, "Infinity"]
    numbers = {name: float(stored[name]) for name in ("value", "low", "high")}
    assert Row(**stored | numbers | {"repeats": tuple(map(float, stored["repeats"]))}) == row
