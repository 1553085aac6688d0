import io
from pathlib import Path

from rich.console import Console

from harness.measure.api import catalogue
from harness.report.console import print_comparison
from harness.report.headlines import HEADLINES
from harness.report.model import Caution, ReportModel
from tests.report.reports import HOSTILE, report


def _printed(model: ReportModel, width: int = 100) -> str:
    out = io.StringIO()
    print_comparison(model, Console(file=out, width=width), Path("runs/x/report.html"))
    return out.getvalue()


def test_headlines_are_measures() -> None:
    assert set(HEADLINES) <= {kind.tag for kind in catalogue()}


def test_it_fits_into_100_columns_and_ends_with_the_path() -> None:
    text = _printed(report())
    assert max(len(line) for line in text.splitlines()) <= 100
    assert text.splitlines()[-1] == "runs/x/report.html"
    assert "Output tokens/s" in text
    assert "absent [1]" in text
    assert "[1] weights are shared" in text
    assert text.index("reference") < text.index("trl")


def test_markup_in_reasons_is_text() -> None:
    model = report()
    model.cautions = [Caution("trl", f"[bold]{HOSTILE}")]
    assert "[bold]" in _printed(model)


def test_only_some_cautions_are_printed_and_the_rest_counted() -> None:
    model = report()
    model.cautions = [Caution("x", str(number)) for number in range(9)]
    assert "and 3 more in the report" in _printed(model)


def test_no_cells() -> None:
    empty = ReportModel(title="x", run_id="y", created="z", finished=None, profile="cpu")
    assert "0 of 0 cells ok" in _printed(empty)
