"""A published report with the corrections that stand beside it: what was taken back is no number any more."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.compare.judgement import Judgement
from harness.compare.rows import Row
from harness.report.corrections import Correction, is_withdrawn, withdrawn_whole
from harness.report.model import ReportModel


def corrected(model: ReportModel, corrections: Sequence[Correction]) -> ReportModel:
    """Each row with what its corrections say; one that was withdrawn without its value, its judgements and, where all
    was withdrawn, the curves."""
    gone = {_place(row, row.adapter) for row in model.rows if is_withdrawn(row, corrections)}
    judgements = [one for one in model.judgements if not {_place(one, one.adapter), _place(one, one.baseline)} & gone]
    return replace(
        model,
        rows=[_row(row, corrections) for row in model.rows],
        judgements=judgements,
        series={} if withdrawn_whole(corrections) else model.series,
        provenance=model.provenance | {"corrections": {str(one.number): one.line() for one in corrections}},
    )


def _place(one: Row | Judgement, label: str) -> tuple[str, ...]:
    return label, one.layout, one.track, one.measure, one.variant


def _row(row: Row, corrections: Sequence[Correction]) -> Row:
    own = [one for one in corrections if one.touches(row)]
    if not own:
        return row
    told = replace(row, reason="; ".join(filter(None, [row.reason, *(one.line() for one in own)])))
    if not is_withdrawn(row, own):
        return told
    nothing: dict[str, Any] = dict.fromkeys(("value", "low", "high", "ratio", "ratio_low", "ratio_high", "detectable"))
    return replace(told, **nothing, state="not measured", n=0, pairs=0, repeats=())
