from dataclasses import replace

from harness.export.content import content_of
from harness.export.corrected import corrected
from harness.report.corrections import Correction
from harness.report.model import ReportModel
from tests.export.test_content import judged
from tests.report.reports import report


def _correction(*rows: str, withdrawn: bool) -> Correction:
    return Correction("run", 1, "2026-12-01", "it was half of that", "a unit was wrong", None, withdrawn, rows)


def _corrected(*rows: str, withdrawn: bool) -> ReportModel:
    model = replace(report(), judgements=[judged(), judged(adapter="reference", baseline="other")])
    return corrected(model, [_correction(*rows, withdrawn=withdrawn)])


def test_a_figure_that_was_withdrawn_is_no_number_anywhere() -> None:
    model = _corrected("trl/*/*/decode_tokens_per_second", withdrawn=True)
    for run in content_of(model).runs:
        (figure,) = (f for f in run.figures if f.name == "throughput/decode_tokens_per_second")
        assert (figure.value is None) is (run.label == "trl")
        assert (not figure.numbers) is (run.label == "trl")
        assert run.label != "trl" or "2026-12-01, withdrawn" in str(figure.reason)
    assert [one.adapter for one in model.judgements] == ["reference"]
    assert model.series


def test_so_is_a_judgement_against_a_baseline_that_was_withdrawn() -> None:
    assert _corrected("reference/*/*/decode_tokens_per_second", withdrawn=True).judgements == []


def test_a_run_that_was_withdrawn_has_nothing_left() -> None:
    content = content_of(_corrected(withdrawn=True))
    assert not any(figure.numbers for run in content.runs for figure in run.figures)
    assert not any(run.series or run.judged for run in content.runs)


def test_a_correction_goes_along_with_the_figures_that_stand() -> None:
    before, after = content_of(report()), content_of(_corrected("trl", withdrawn=False))
    assert [f.numbers for run in after.runs for f in run.figures] == [f.numbers for r in before.runs for f in r.figures]
    for run in after.runs:
        assert "it was half of that" in str(run.parameters["correction.1"])
        assert {"it was half of that" in str(f.reason) for f in run.figures} == {run.label == "trl"}


def test_without_corrections_nothing_changes() -> None:
    assert corrected(report(), []).rows == report().rows
