"""The framework's own figures beside ours."""

from pathlib import Path

import pytest
import yaml

from harness.measure.api import SelfReport, self_report_cell
from tests.fakes import ROOT, context, fake_ledger


@pytest.fixture
def report(tmp_path: Path) -> dict[str, SelfReport]:
    spec = yaml.safe_load((ROOT / "adapters/fake/adapter.yaml").read_text(encoding="utf-8"))
    found = self_report_cell(fake_ledger(tmp_path), context(native_definitions=spec["native"]))
    assert [row.key for row in found] == ["step_s", "tokens", "runtime_s", "entropy"]
    return {row.key: row for row in found}


def test_a_figure_of_each_step_is_averaged_over_the_window(report: dict[str, SelfReport]) -> None:
    row = report["step_s"]
    assert row.native == pytest.approx(0.040)
    assert row.ours == pytest.approx(0.041)
    assert row.ratio == pytest.approx(40 / 41)
    assert (row.measure, row.unit, row.reason) == ("step_seconds", "s", None)


def test_a_running_total_is_what_it_grew_by_in_the_window(report: dict[str, SelfReport]) -> None:
    row = report["tokens"]
    assert row.native == 8 * 20
    assert row.ours == 8 * 80
    assert row.ratio == pytest.approx(1 / 4)


def test_a_figure_of_the_whole_run_stands_beside_ours_of_the_whole_run(report: dict[str, SelfReport]) -> None:
    row = report["runtime_s"]
    assert row.native == 60
    assert row.ours == pytest.approx(10 * 0.041)


def test_what_is_never_printed_has_a_reason(report: dict[str, SelfReport]) -> None:
    row = report["entropy"]
    assert (row.native, row.ours, row.ratio) == (None, None, None)
    assert row.reason == "the framework reported none in the measured steps"


def test_a_figure_in_another_unit_says_its_scale(tmp_path: Path) -> None:
    said = {"key": "step_s", "definition": "d", "measure": "step_seconds", "differs_because": "b", "scale": 1000}
    row = self_report_cell(fake_ledger(tmp_path), context(native_definitions=[said]))[0]
    assert row.ratio == pytest.approx(1000 * 40 / 41)


def test_nothing_of_ours_is_its_like(tmp_path: Path) -> None:
    said = {"key": "step_s", "definition": "d", "measure": None, "differs_because": "b"}
    row = self_report_cell(fake_ledger(tmp_path), context(native_definitions=[said]))[0]
    assert row.native == pytest.approx(0.04)
    assert (row.ours, row.reason) == (None, "no figure of ours is its like")


@pytest.mark.parametrize(("how", "expected"), [("sum", 8 * 0.04), ("max", 0.04), ("per_step", 0.04)])
def test_how_the_steps_of_a_window_become_one_number(how: str, expected: float, tmp_path: Path) -> None:
    said = {"key": "step_s", "definition": "d", "measure": None, "differs_because": "b", "reduce": how}
    row = self_report_cell(fake_ledger(tmp_path), context(native_definitions=[said]))[0]
    assert row.native == pytest.approx(expected)


def test_a_member_of_a_family_stands_beside_theirs(tmp_path: Path) -> None:
    said = {"key": "step_s", "definition": "d", "measure": "t_seq_part_seconds[train]", "differs_because": "b"}
    unknown = said | {"measure": "t_seq_part_seconds[no_such_term]"}
    rows = self_report_cell(fake_ledger(tmp_path), context(native_definitions=[said, unknown]))
    assert rows[0].ours is not None
    assert rows[0].unit == "s"
    assert (rows[1].ours, rows[1].reason) == (None, "no figure of ours is its like")
