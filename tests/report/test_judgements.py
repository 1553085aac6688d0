"""Judgements as people read them."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.compare.judge import judge
from harness.compare.judgement import STATES, Explanation, JudgedState, Judgement
from harness.report import build
from harness.report.cautions import cautions_of
from harness.report.console import print_comparison
from harness.report.html import render_html
from harness.report.judgements import change_of, judged_view, null_words, percent
from harness.report.markdown import render_markdown
from harness.report.model import ReportModel
from harness.report.table import comparison
from tests.compare.judged_cells import arm
from tests.report.reports import HOSTILE, report
from tests.report.runs import cell, make_run
from tests.report.test_html import Page

NULL = {"adapter": "reference", "pairs": 5, "noise": 0.013, "failed": None, "stopped": None}
ROOT = Path(__file__).resolve().parents[2]


def judgement(state: JudgedState, measure: str = "memory_peak_bytes", **changes: object) -> Judgement:
    place = ("trl", "reference", "colocated_sync", "free", measure, "", "s", "lower", state)
    told = {"effect": 1.121, "low": 1.09, "high": 1.152, "detectable": 0.031, "margin": 0.02, "pairs": 5}
    return Judgement(*place, **told | changes)  # type: ignore[arg-type]


def of_every_state() -> ReportModel:
    model = report()
    model.figures = []
    explained = Explanation("forward_backward", 0.012, 0.83)
    model.judgements = [judgement(state, reason=f"why {state}") for state in STATES]
    model.judgements[1] = replace(model.judgements[1], explained_by=explained)
    model.null_test = NULL
    return model


def test_a_change_is_in_percent_with_its_interval_and_a_manifold_one_is_a_ratio() -> None:
    assert change_of(judgement("worse")) == "+12.1 % (+9.0 to +15.2)"
    assert change_of(judgement("better", effect=0.99, low=0.98, high=1.0001)) == "−1.0 % (−2.0 to 0.0)"
    assert change_of(judgement("worse", effect=4.6, low=4.4, high=4.81)) == "4.60× (4.40 to 4.81)"
    assert [percent(share) for share in (0.031, 1.5, 1e9, None)] == ["3.1 %", "2.50×", "over 100×", "–"]
    assert change_of(judgement("failed", effect=None, low=None, high=None)) == "–"


def test_every_state_is_in_the_markdown_with_its_reason_and_what_could_be_found() -> None:
    text = render_markdown(of_every_state())
    section = text[text.index("## Held against reference, measure by measure") : text.index("## Figures")]
    for state in STATES:
        line = next(line for line in section.splitlines() if f"| {state} |" in line)
        assert f"why {state}" in line
        assert "+12.1 % (+9.0 to +15.2) | 3.1 % | 2.0 % |" in line
    assert "forward backward: 83 % of it, +12 ms a step; why worse" in section
    assert "The A/A test held reference against itself in 5 pairs: 1.3 % from run to run" in section
    assert "nothing is ranked" in section


def test_the_page_has_the_section_and_a_link_to_it(tmp_path: Path) -> None:
    page = Page(text := render_html(of_every_state(), tmp_path))
    assert "judgements" in page.ids
    assert "#judgements" in page.links
    assert not page.open
    for state in STATES:
        assert f">{state}<" in text


def test_the_verdict_stands_behind_the_ratio_in_the_table_and_nowhere_else() -> None:
    model = report()
    model.judgements = [judgement("no change"), judgement("worse", "cost_device_seconds", effect=None)]
    entries = {
        family.definition.tag: line.entries[1].ratio
        for topic in comparison(model, "free").topics
        for family in topic.families
        for line in family.lines
    }
    assert entries["memory_peak_bytes"].endswith("], no change (smallest detectable 3.1 %)")
    assert "worse" not in " ".join(entries.values()), "without an effect there is nothing to say of a value"


def test_what_holds_for_all_of_a_system_is_one_line() -> None:
    model = report()
    nothing = {"effect": None, "low": None, "high": None, "detectable": None, "reason": "needs a GPU"}
    model.judgements = [judgement("not run", measure, **nothing) for measure in ("step_seconds", "memory_peak_bytes")]
    (line,) = judged_view(model)
    assert (line.measure, line.state, line.said) == ("all that is judged", "not run", "needs a GPU")


def test_a_run_with_nothing_to_hold_it_against_has_no_such_section(tmp_path: Path) -> None:
    model = report()
    model.figures = []
    assert "Held against" not in render_markdown(model)
    assert "judgements" not in Page(render_html(model, tmp_path)).ids


def test_hostile_words_are_text(tmp_path: Path) -> None:
    model = of_every_state()
    model.judgements = [replace(one, reason=HOSTILE, adapter=HOSTILE) for one in model.judgements]
    page = render_html(model, tmp_path)
    assert "<script" not in page.lower()
    assert not Page(page).open


def test_the_terminal_says_each_state_once_a_system(tmp_path: Path) -> None:
    buffer = io.StringIO()
    print_comparison(of_every_state(), Console(file=buffer, width=200), tmp_path / "report.html")
    text = buffer.getvalue()
    assert "trl · colocated sync · free against reference:" in text
    assert "worse: Peak memory of the host +12.1 % (+9.0 to +15.2) (forward backward: 83 % of it" in text
    assert "no change: Peak memory of the host +12.1 % (+9.0 to +15.2), smallest detectable 3.1 % (why no" in text


def test_a_reason_that_several_measures_share_is_said_once(tmp_path: Path) -> None:
    model = report()
    nothing = {"effect": None, "low": None, "high": None, "reason": "only 1 pair ended well"}
    tags = ("memory_peak_bytes", "cost_device_seconds")
    model.judgements = [judgement("cannot tell", tag, **nothing) for tag in tags]
    buffer = io.StringIO()
    print_comparison(model, Console(file=buffer, width=200), tmp_path / "report.html")
    assert (
        "  cannot tell: Peak memory of the host; Cost of an informative update (only 1 pair ended well)\n"
        in buffer.getvalue()
    )
    model.judgements = [judgement("not run", tag, **nothing | {"reason": "needs a GPU"}) for tag in tags]
    buffer = io.StringIO()
    print_comparison(model, Console(file=buffer, width=200), tmp_path / "report.html")
    assert buffer.getvalue().count("  not run: needs a GPU\n") == 1


def test_judgements_are_in_the_order_of_names_and_of_gates_whatever_their_values() -> None:
    model = report()
    for new in (arm("trl", 1, slower={"decode": 2.0}), arm("trl", 1, slower={"decode": 0.5})):
        model.judgements = judge([*arm("reference", 2), *new], "trl", "reference", None)
        assert [line.measure for line in judged_view(model)] == [
            "step seconds",
            "Term of T_seq, rollout",
            "Term of T_seq, train",
            "Term of T_seq, sync",
            "Peak memory of the host",
        ]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"failed": "it differs"}, "it differs"),
        ({"noise": 0.07}, "7.0 % from run to run"),
        ({"noise": None}, "not judged"),
    ],
)
def test_a_noisy_machine_is_to_be_distrusted(changes: dict[str, object], word: str) -> None:
    model = of_every_state()
    assert not [caution for caution in cautions_of(model) if "A/A" in caution.text]
    model.null_test = NULL | changes
    assert word in null_words(model.null_test)
    assert null_words(model.null_test) in [caution.text for caution in cautions_of(model)]


def test_a_verdict_without_an_a_a_test_is_said_to_be_one() -> None:
    model = of_every_state()
    model.null_test = {}
    assert any("no A/A test was run" in caution.text for caution in cautions_of(model))


def test_a_report_of_before_there_were_judgements_is_read() -> None:
    published = sorted(ROOT.glob("results/*/*/*/report.json"))
    assert published
    for path in published:
        model = ReportModel.from_dict(json.loads(path.read_text(encoding="utf-8")))
        assert ReportModel.from_dict(model.as_dict()).judgements == model.judgements


def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **manifest: object) -> ReportModel:
    monkeypatch.setattr(build, "draw_figures", lambda model, folder: [])
    rows = [cell(name, repeat) | {"foreign_cores": 0.1} for repeat in range(3) for name in ("reference", "trl")]
    folder = make_run(tmp_path, rows, **manifest)  # type: ignore[arg-type]
    build.build_report(folder)
    return ReportModel.from_dict(json.loads((folder / "report.json").read_text(encoding="utf-8")))


def test_a_run_is_judged_from_its_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = built(tmp_path, monkeypatch)
    assert {(one.adapter, one.baseline, one.state) for one in model.judgements} == {("trl", "reference", "no change")}
    assert {one.measure for one in model.judgements} == {"step_seconds", "t_seq_part_seconds"}


def test_a_run_with_a_baseline_of_its_own_is_held_against_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = built(tmp_path, monkeypatch, baseline="trl")
    assert {(one.adapter, one.baseline) for one in model.judgements} == {("reference", "trl")}


def test_a_null_test_that_failed_is_in_every_verdict_and_on_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    null = NULL | {"layout": "colocated_sync", "track": "free", "cells": [], "max_noise": 0.1, "margin": {}}
    model = built(tmp_path, monkeypatch, null_test=null | {"failed": "it differs"})
    assert {one.state for one in model.judgements} == {"cannot tell"}
    assert any("it differs" in caution.text for caution in model.cautions)


def test_judgements_go_through_json() -> None:
    model = of_every_state()
    again = ReportModel.from_dict(json.loads(json.dumps(model.as_dict(), allow_nan=False)))
    assert again.judgements == model.judgements
    assert again.null_test == model.null_test
