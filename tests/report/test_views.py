from dataclasses import replace

from harness.report.table import comparison
from harness.report.views import fidelity_view
from tests.report.reports import FIGURES, report, row

SHARE = next(figure for figure in FIGURES if figure[1] == "unattributed_share")


def test_fidelity_says_how_much_was_not_what_was_asked() -> None:
    model = report()
    (table,) = fidelity_view(model)
    off = sum(found.grade != "exact" for found in model.fidelity)
    assert off
    assert table.summary.startswith(f"{off} of {len(model.fidelity)} values")
    model.fidelity = [replace(found, grade="exact") for found in model.fidelity]
    (table,) = fidelity_view(model)
    assert table.summary == f"All {len(model.fidelity)} values in force are exactly what was asked."


def test_a_share_is_a_percentage_even_where_it_is_zero() -> None:
    model = report()
    model.rows = [row("trl", SHARE, value=0.0)]
    assert comparison(model, "free").topics[0].families[0].lines[0].unit == "%"
