from pathlib import Path

import pytest

from harness.contract import STAGES
from harness.report.figures import PLATES, draw_figures
from harness.report.figures.style import ADAPTER_COLORS, STAGE_COLORS, adapter_color, layout_tint
from harness.report.model import ReportModel
from tests.report.reports import report, row


def asynchronous() -> ReportModel:
    """A report of which one system is asynchronous: it has a queue, and another lag bound than the other."""
    model = report()
    for measure, sync, overlapped in (
        ("lag_bound", 0.0, 2.0),
        ("clip_fraction", 0.0, 0.1),
        ("dropped_share", 0.0, 0.2),
    ):
        figure = ("lag and ratios", measure, measure, "", "share", "none")
        model.rows += [
            row(adapter, figure, value=value, low=value, high=value)  # type: ignore[arg-type]
            for adapter, value in (("reference", overlapped), ("trl", sync))
        ]
    for cell in model.cells:
        model.series[cell["cell_id"]]["queue"] = {
            "t": [-1.0, 0.5, 1.0, 2.5],
            "records": [4, 8, 4, 8],
            "tokens": [40, 90, 50, 80],
            "closed_from": [0.5, 2.5],
            "closed_to": [1.0, 4.0],
            "limit": ["lag_bound", "tokens"],
        }
    return model


@pytest.mark.filterwarnings("error")
def test_every_plate_is_drawn_as_svg_and_png(tmp_path: Path) -> None:
    figures = draw_figures(asynchronous(), tmp_path)
    assert [figure.name for figure in figures] == [plate.name for plate in PLATES]
    for figure in figures:
        assert figure.reason is None
        assert figure.alt
        assert figure.caption
        assert b"<svg" in (tmp_path / f"{figure.name}.svg").read_bytes()
        assert (tmp_path / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")


def test_without_data_each_says_why(tmp_path: Path) -> None:
    model = report()
    model.rows = []
    model.series = {cell["cell_id"]: {"lag": {"reason": "no version was noted"}} for cell in model.cells}
    figures = {figure.name: figure for figure in draw_figures(model, tmp_path)}
    assert all(figure.reason for figure in figures.values())
    assert figures["lag"].reason == "no version was noted"
    assert not list(tmp_path.glob("*.svg"))


def test_cells_that_failed_are_not_drawn(tmp_path: Path) -> None:
    model = report(repeats=1)
    for cell in model.cells:
        cell["status"] = "failed"
    model.rows = []
    reasons = {figure.reason for figure in draw_figures(model, tmp_path)}
    assert "no cell of this track has what it is drawn from" in reasons


def test_two_tracks_give_two_sets(tmp_path: Path) -> None:
    model = report(repeats=1)
    model.cells += [{**cell, "track": "fixed_length", "cell_id": cell["cell_id"] + "x"} for cell in model.cells]
    names = [figure.name for figure in draw_figures(model, tmp_path)]
    assert {"lag-free", "lag-fixed_length"} <= set(names)
    assert len(names) == len(set(names))


def test_no_run_no_figures(tmp_path: Path) -> None:
    empty = ReportModel(title="x", run_id="y", created="z", finished=None, profile="cpu")
    assert draw_figures(empty, tmp_path) == []


def test_a_colour_follows_the_name_not_the_order_of_the_run() -> None:
    assert adapter_color("trl", ["trl", "reference"]) == adapter_color("trl", ["reference", "trl"]) == ADAPTER_COLORS[1]


def test_every_stage_has_a_colour() -> None:
    assert set(STAGES) <= set(STAGE_COLORS)


def test_layouts_of_an_adapter_have_tints_of_its_colour() -> None:
    layouts = ["colocated_sync", "disaggregated_async", "disaggregated_sync", "colocated_overlap"]
    tints = [layout_tint("#0072B2", layout, layouts) for layout in sorted(layouts)]
    assert tints[0] == "#0072b2"
    assert len(set(tints)) == 4
    assert layout_tint("#0072B2", "colocated_sync", ["colocated_sync"]) == "#0072b2"


def test_one_lag_bound_shows_no_cost_of_a_deeper_queue(tmp_path: Path) -> None:
    figures = {figure.name: figure for figure in draw_figures(report(), tmp_path)}
    assert "different lag bounds" in str(figures["cost_of_lag"].reason)
