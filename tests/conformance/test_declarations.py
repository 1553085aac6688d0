"""What an adapter says of itself: that it is all there, that it has a source, and that it holds."""

import datetime

from harness.execute.adapter import Adapter
from harness.execute.compose import options_of
from harness.execute.doctor import diagnose
from harness.measure.api import catalogue
from harness.measure.self_report import NAME
from harness.report.build import build_report
from tests.conformance.cells import SMALL, KitRun, covering, offered, planned, refusal


def _adapter(name: str) -> Adapter:
    return planned(name, list(SMALL)).adapter


def test_its_environment_is_as_its_lock_says_and_no_hook_has_drifted(adapter: str, plain: KitRun) -> None:
    """Asked after the first cell, which makes the environment where there is none."""
    name = _adapter(adapter).name
    bad = [check for check in diagnose(name, "cpu") if check.name.startswith(f"{name}:") and not check.ok]
    assert not bad, f"{bad[0].name}: {bad[0].detail}"


def test_each_axis_has_a_value_a_source_and_a_date(adapter: str) -> None:
    axes = _adapter(adapter).spec["axes"]
    assert {"placement", "synchrony"} <= axes.keys(), "at least placement and synchrony are declared"
    for axis, said in axes.items():
        assert said["declared"], f"axis {axis} declares nothing"
        assert said["source"], f"axis {axis} has no source"
        datetime.date.fromisoformat(said["date"])


def test_each_figure_of_its_own_is_defined(adapter: str) -> None:
    known = {measure.tag for measure in catalogue()}
    for said in _adapter(adapter).spec.get("native") or []:
        assert said["definition"], f"{said['key']} has no definition"
        assert said["differs_because"], f"{said['key']} does not say why it differs from ours"
        named = NAME.fullmatch(said["measure"]) if said["measure"] else None
        assert said["measure"] is None or (named and named["tag"] in known), f"{said['key']}: no {said['measure']}"


def test_each_layout_runs_or_says_in_a_line_why_not(adapter: str) -> None:
    assert covering(adapter), "no cell of it runs on this machine"
    running = {cell.layout for cell in covering(adapter)}
    for cell in offered(adapter):
        assert cell.layout in options_of("layout"), f"there is no layout {cell.layout}"
        reason = refusal(adapter, cell)
        assert cell.layout in running or reason, f"{cell} is left out without a reason"
        assert reason is None or (reason.strip() and "\n" not in reason), f"{cell}: the reason is no line"


def test_the_report_explains_every_null(plain: KitRun) -> None:
    bare = [row for row in build_report(plain.folder).rows if row.value is None and not row.reason]
    assert not bare, f"{bare[0].measure} is null without a reason"
