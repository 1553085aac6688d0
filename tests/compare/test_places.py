"""What ran in two places is never paired, never pooled, and has columns of its own. Machine ids are forged."""

from dataclasses import replace
from typing import Any

import pytest

from harness.compare.api import compare_rows
from harness.compare.judge import judge_all
from harness.compare.places import placed
from harness.compare.results import CellResult
from harness.compare.rows import Row
from harness.measure.values import Value

SPEED = Value("training_tokens_per_second", 0.0, "tokens/s", "spans", 1)


def _row(adapter: str, repeat: int, machine: str | None, part: str | None = None) -> dict[str, Any]:
    row = {"adapter": adapter, "repeat": repeat, "machine": machine}
    return row | ({"part": part} if part else {})


def _cell(adapter: str, repeat: int, place: str, speed: float) -> CellResult:
    label = f"{adapter} {place}".strip()
    values = [replace(SPEED, value=speed)]
    return CellResult(label, "colocated_sync", "fixed_length", repeat, "ok", None, None, values, place=place)


def _find(rows: list[Row], adapter: str) -> Row:
    (found,) = [row for row in rows if row.adapter == adapter and row.measure == SPEED.tag]
    return found


def test_one_place_is_no_part_of_a_label() -> None:
    rows = [_row("trl", 0, "aa"), _row("reference", 0, "aa"), _row("verl", 0, None)]
    assert [row["adapter"] for row in placed(rows)] == ["trl", "reference", "verl"]
    assert {row["place"] for row in placed([{"adapter": "trl"}])} == {""}


def test_each_machine_is_a_place_and_so_is_each_part_of_one() -> None:
    rows = [_row("trl", 0, "aa", "trl"), _row("reference", 0, "aa", "trl"), _row("verl", 0, "bb", "verl")]
    assert [row["adapter"] for row in placed(rows)] == ["trl on aa", "reference on aa", "verl on bb"]
    rows.append(_row("reference", 0, "bb", "verl"))
    rows.append(_row("reference", 0, "aa", "areal"))
    assert [row["adapter"] for row in placed(rows)] == [
        "trl on aa, part trl",
        "reference on aa, part trl",
        "verl on bb",
        "reference on bb",
        "reference on aa, part areal",
    ]
    assert placed(placed(rows)) == placed(rows)


def test_a_row_of_a_job_that_died_before_it_had_a_machine_is_in_no_place() -> None:
    rows = [_row("trl", 0, "aa"), _row("trl", 1, "bb"), _row("trl", 2, None)]
    assert [row["adapter"] for row in placed(rows)] == ["trl on aa", "trl on bb", "trl"]


def test_ratios_are_to_the_reference_of_the_same_place() -> None:
    """The second machine is ten times as fast as the first; both systems are twice as fast as the reference there."""
    cells = [
        *(_cell("reference", k, "on aa", 100 + k) for k in range(3)),
        *(_cell("trl", k, "on aa", 2 * (100 + k)) for k in range(3)),
        *(_cell("reference", k, "on bb", 1000 + k) for k in range(3)),
        *(_cell("verl", k, "on bb", 2 * (1000 + k)) for k in range(3)),
    ]
    rows = compare_rows(cells)
    assert [_find(rows, name).ratio for name in ("trl on aa", "verl on bb")] == pytest.approx([2, 2])
    assert [_find(rows, name).value for name in ("reference on aa", "reference on bb")] == [101, 1001]
    assert _find(rows, "reference on bb").ratio is None
    found = {(one.adapter, one.baseline) for one in judge_all(cells, "reference", {})}
    assert found == {("trl on aa", "reference on aa"), ("verl on bb", "reference on bb")}


def test_a_run_that_went_on_elsewhere_pairs_repeats_by_their_number() -> None:
    """The first machine went down in repeat 1, after the reference and before trl: that pair is nobody's."""
    speeds = {"on aa": 100.0, "on bb": 700.0}
    ran = [("reference", 0, "on aa"), ("trl", 0, "on aa"), ("reference", 1, "on aa"), ("trl", 1, "on bb")]
    ran += [("reference", 2, "on bb"), ("trl", 2, "on bb"), ("trl", 3, "on bb"), ("reference", 3, "on bb")]
    cells = [_cell(name, k, place, (k + 1) * speeds[place] * (3 if name == "trl" else 1)) for name, k, place in ran]
    rows = compare_rows(cells)
    assert [(_find(rows, f"trl {place}").ratio, _find(rows, f"trl {place}").pairs) for place in speeds] == [
        (pytest.approx(3), 1),
        (pytest.approx(3), 2),
    ]
    assert _find(rows, "trl on bb").repeats == (None, 4200, 6300, 8400)
    assert _find(rows, "trl on bb").n == 3
