import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compare.judgement import Judgement
from harness.report.site.reading import Run, read_results
from tests.report.site.folders import FIRST, correct, write_run
from tests.report.test_judgements import judgement


def _judged(adapter: str, baseline: str, measure: str) -> Judgement:
    return replace(judgement("worse", measure), adapter=adapter, baseline=baseline, p=0.001)


def _run(folder: Path, *judged: Judgement) -> Run:
    run = write_run(folder, FIRST)
    path = run / "report.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"judgements": [one.as_dict() for one in judged]}), encoding="utf-8")
    correct(run, rows=["trl/*/*/lag_max"])
    return read_results(folder).runs[0]


@pytest.mark.parametrize(("adapter", "baseline"), [("trl", "reference"), ("reference", "trl")])
def test_no_verdict_rests_on_a_figure_that_was_taken_back(tmp_path: Path, adapter: str, baseline: str) -> None:
    run = _run(tmp_path, _judged(adapter, baseline, "lag_max"), _judged(adapter, baseline, "ess_tokens_share"))
    void, kept = run.model.judgements
    assert (void.state, void.effect, void.low, void.p) == ("cannot tell", None, None, None)
    assert "withdrawn (trl/*/*/lag_max)" in void.reason
    assert (kept.state, kept.effect) == ("worse", 1.121)


def test_only_what_the_correction_names_loses_its_value(tmp_path: Path) -> None:
    rows = {(row.adapter, row.name): row for row in _run(tmp_path).model.rows}
    assert rows["trl", "lag_max"].value is None
    assert rows["reference", "lag_max"].value is not None
    assert rows["trl", "ess_tokens_share"].value is not None
