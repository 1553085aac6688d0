"""A report without what a correction took back."""

from collections.abc import Sequence
from dataclasses import replace

from harness.compare.judgement import Judgement
from harness.compare.rows import Row
from harness.report.corrections import Correction
from harness.report.model import ReportModel


def without_withdrawn(model: ReportModel, corrections: Sequence[Correction]) -> ReportModel:
    """Figures that were taken back have no value, and the verdicts that rest on them are none; the correction is the
    reason of both. `report.html` has them as they were published."""
    taken = {
        _place(row, row.adapter): correction
        for correction in corrections
        if correction.withdrawn
        for row in model.rows
        if correction.touches(row)
    }
    rows = [_no_row(row, taken.get(_place(row, row.adapter))) for row in model.rows]
    judged = [
        _no_verdict(one, taken.get(_place(one, one.adapter)) or taken.get(_place(one, one.baseline)))
        for one in model.judgements
    ]
    return replace(model, rows=rows, judgements=judged)


def _place(of: Row | Judgement, adapter: str) -> tuple[str, ...]:
    return adapter, of.layout, of.track, of.name


def _no_row(row: Row, taken: Correction | None) -> Row:
    if taken is None:
        return row
    nothing = {"value": None, "low": None, "high": None, "ratio": None, "detectable": None, "repeats": ()}
    return replace(row, **nothing, n=0, state="not measured", reason=taken.line())  # type: ignore[arg-type]


def _no_verdict(judgement: Judgement, taken: Correction | None) -> Judgement:
    if taken is None:
        return judgement
    nothing = dict.fromkeys(("effect", "low", "high", "p", "p_adjusted", "detectable", "explained_by"))
    return replace(judgement, **nothing, state="cannot tell", reason=taken.line())  # type: ignore[arg-type]
