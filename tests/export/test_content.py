import json
import math
from dataclasses import replace
from typing import Any

from harness.compare.judgement import Judgement
from harness.export.content import FOREIGN, PUBLISHED, Content, Figure, content_of
from harness.export.names import UNNAMEABLE
from harness.report.model import ReportModel
from tests.export.conftest import UNFINISHED
from tests.report.reports import report


def _figure(content: Content, run: str, ending: str) -> Figure:
    return next(f for one in content.runs if one.name == run for f in one.figures if f.name.endswith(ending))


def test_columns_come_before_the_cells_that_belong_to_them(content: Content) -> None:
    column = "fake.colocated_sync.free"
    assert [(run.kind, run.name, run.status) for run in content.runs] == [
        ("column", column, "ok"),
        ("cell", f"{column}.r0", "ok"),
        ("cell", f"{column}.r1", "ok"),
        ("cell", f"{column}.r2", "failed"),
    ]
    assert {run.group for run in content.runs} == {column}


def test_the_figures_are_those_of_the_report(content: Content, model: ReportModel) -> None:
    named = {(said["measure"], said["variant"]): name for name, said in content.definitions.items()}
    column, first, second, _ = ({f.name: f for f in run.figures} for run in content.runs)
    for row in model.rows:
        name = named[row.measure, row.variant]
        told = column[name]
        assert (told.value, told.low, told.high, told.n) == (row.value, row.low, row.high, row.n)
        assert (first[name].value, second[name].value, None) == row.repeats


def test_the_interval_stands_apart_from_the_figures(content: Content) -> None:
    figure = _figure(content, "fake.colocated_sync.free", "/step_seconds_p50")
    assert figure.numbers == {
        "stages/step_seconds_p50": figure.value,
        "interval/stages.step_seconds_p50.low": figure.low,
        "interval/stages.step_seconds_p50.high": figure.high,
    }
    assert list(_figure(content, "fake.colocated_sync.free.r0", "/step_seconds_p50").numbers) == [figure.name]


def test_what_has_no_value_has_a_reason_and_is_no_number(content: Content) -> None:
    for run in content.runs:
        for figure in run.figures:
            assert (figure.value is None) <= bool(figure.reason), figure
            assert figure.value is None or not math.isnan(figure.value)
    failed = content.runs[-1]
    assert {(f.value, f.state, f.reason) for f in failed.figures} == {(None, "failed", UNFINISHED)}
    assert content.runs[0].reason == UNFINISHED


def test_the_parameters_are_what_was_set_and_what_ran(content: Content) -> None:
    told = content.runs[1].parameters
    assert told["settings.task.steps"] == 6
    assert told["settings.adapter.drop_every"] == 7
    assert told["evidence"] == "measured here"
    assert len(str(told["settings_hash"])) == 64
    assert "settings.output" not in told
    assert all(value is not None for value in told.values())


def test_a_name_is_one_that_every_tool_takes_and_names_one_figure() -> None:
    model = report()
    twins = [replace(model.rows[0], variant=variant) for variant in ("a b", "a/b", "[x]", "ÿ")]
    model.rows += twins
    names = [name.replace("/", "") for name in content_of(model).definitions]
    assert not [name for name in names if UNNAMEABLE.search(name)]
    assert len(names) == len({(row.measure, row.variant) for row in model.rows})


def test_series_have_a_step_and_say_why_they_are_not_there(content: Content) -> None:
    cell = content.runs[1]
    curves = {name: series for series in cell.series for name in series.columns}
    loss = curves["per_step/loss"]
    assert loss.axis == "step"
    assert len(loss.x) == len(loss.columns["per_step/loss"]) == 5
    assert curves["per_batch/reward.mean"].axis == "samples"
    assert curves["per_step/seconds.decode"].x == loss.x
    assert cell.missing["queue"]
    assert content.runs[0].series == []


def test_memory_is_a_curve_for_each_component_and_source() -> None:
    cell = next(run for run in content_of(report()).runs if run.kind == "cell")
    memory = {name: series for series in cell.series for name in series.columns if "memory" in name}
    assert {name: len(series.x) for name, series in memory.items()} == {
        "over_time/memory_bytes.process.pss": 1,
        "over_time/memory_bytes.tree.pss": 40,
    }
    assert memory["over_time/memory_bytes.process.pss"].x == [5500]


def test_a_cell_without_series_says_why(model: ReportModel) -> None:
    _, first, _, failed = content_of(replace(model, series={})).runs
    assert (first.series, first.missing) == ([], {"series": PUBLISHED})
    assert failed.missing == {"series": UNFINISHED}
    foreign = content_of(replace(model, series={}, ingested={"files": []})).runs[1]
    assert foreign.missing == {"series": FOREIGN}


def test_json_holds_an_infinite_value_as_a_word() -> None:
    text = json.dumps(content_of(report()).as_dict(), allow_nan=False)
    figures = [f for run in json.loads(text)["runs"] for f in run["figures"]]
    assert [f["name"] for f in figures if f["value"] == "Infinity"] == ["cost/cost_device_seconds"]


def judged(**changes: Any) -> Judgement:
    """What a judge may say of the first figure of the invented report."""
    where = {"adapter": "trl", "baseline": "reference", "layout": "colocated_sync", "track": "free"}
    what = {"measure": "decode_tokens_per_second", "variant": "", "unit": "tokens/s", "direction": "higher"}
    told = {"state": "worse", "effect": 0.9, "low": 0.85, "high": 0.95, "pairs": 5, "explained_by": None}
    return Judgement(**where | what | told | changes)


def test_a_column_says_what_it_was_judged_to_be() -> None:
    again = judged(baseline="trl@1.15.0", state="cannot tell", effect=None, reason="fewer than 3 pairs")
    model = replace(report(), judgements=[judged(), again, judged(layout="elsewhere")])
    told = {run.name: run.judged for run in content_of(model).runs if run.judged}
    words = "worse against reference (0.900× [0.850, 0.950]); cannot tell against trl@1.15.0: fewer than 3 pairs"
    assert told == {"trl.colocated_sync.free": {"throughput/decode_tokens_per_second": words}}


def test_a_simulated_run_is_not_called_measured() -> None:
    model = report()
    model.adapters["trl"] |= {"capabilities": {"simulated": "nothing ran"}}
    content = content_of(model)
    assert {content.evidence, *(run.parameters["evidence"] for run in content.runs)} == {"simulated"}
