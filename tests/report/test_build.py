import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UserError
from harness.report.build import build_report, load_manifest
from tests.report.reports import HOSTILE
from tests.report.runs import cell, make_run


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.report.build.draw_figures", lambda model, folder: [])


def test_a_run_of_two_systems(tmp_path: Path) -> None:
    cells = [cell(name, repeat) for repeat in range(2) for name in ("reference", "trl")]
    run = make_run(tmp_path, cells)
    model = build_report(run)
    assert {path.name for path in run.iterdir()} >= {"report.json", "report.md", "report.html", "figures", "timeline"}
    content = json.loads((run / "report.json").read_text())
    assert content == json.loads(json.dumps(model.as_dict()))
    assert model.violations == []
    assert {row.adapter for row in model.rows} == {"reference", "trl"}
    tokens = next(row for row in model.rows if row.measure == "generated_tokens")
    assert (tokens.value, tokens.n) == (16.0, 2)
    assert all(row.reason for row in model.rows if row.value is None)
    assert set(model.definitions) == {row.measure for row in model.rows}
    assert [d.number for d in model.definitions.values()] == list(range(1, len(model.definitions) + 1))
    assert [row.setting for row in model.fidelity] == ["group_size", "group_size"]
    assert {row.key for row in model.self_report} == {"loss"}
    assert "fidelity" not in content["cells"][0]


def test_the_axes_come_from_the_ledgers(tmp_path: Path, no_figures: None) -> None:
    model = build_report(make_run(tmp_path, [cell("trl")], adapters=("trl",)))
    axes = {axis.axis: axis for axis in model.axes}
    assert axes["placement"].measured == "colocated: the same process generates and trains, on cpu"
    assert axes["synchrony"].differs
    assert axes["lag_bound"].measured == "at most 0 updates"
    assert axes["training_backend"].measured == "torch 2.13.0"
    assert axes["weight_sync"].measured is None
    assert axes["adapters_lora"].measured == "all 1\u202f000 parameters trained"
    assert any("synchrony" in caution.text for caution in model.cautions)


def test_one_repeat_has_no_interval_and_says_so(tmp_path: Path, no_figures: None) -> None:
    model = build_report(make_run(tmp_path, [cell("trl")], adapters=("trl",)))
    assert all(row.low is None and row.high is None for row in model.rows)
    assert any("no interval" in caution.text for caution in model.cautions)


def test_failed_cells_are_columns_with_their_cause(tmp_path: Path, no_figures: None) -> None:
    failed = cell("trl", status="failed", cause="system", reason=f"out of memory {HOSTILE}")
    run = make_run(tmp_path, [cell("reference"), failed])
    model = build_report(run)
    rows = [row for row in model.rows if row.adapter == "trl"]
    assert rows
    assert {row.state for row in rows} == {"failed"}
    assert "<script" not in (run / "report.html").read_text()


@pytest.mark.parametrize("status", ["failed", "not_run"])
def test_no_cell_ended_well(tmp_path: Path, status: str) -> None:
    run = make_run(tmp_path, [cell(name, status=status, reason="the disk is full") for name in ("reference", "trl")])
    model = build_report(run)
    assert all(figure.reason for figure in model.figures)
    assert "the disk is full" in (run / "report.html").read_text()


def test_a_run_that_has_not_begun(tmp_path: Path) -> None:
    bare: dict[str, Any] = {
        "finished": None,
        "machine": None,
        "configs": {},
        "rlaxes": None,
        "load": None,
        "profile": None,
    }
    run = make_run(tmp_path, [], adapters=(), **bare)
    model = build_report(run)
    assert model.rows == []
    assert any("not ended" in caution.text for caution in model.cautions)


def test_completions_are_shown_as_text(tmp_path: Path, no_figures: None) -> None:
    run = make_run(tmp_path, [cell("trl")], rollout={"text": HOSTILE}, adapters=("trl",))
    assert build_report(run).completions[0].text == HOSTILE
    assert "<script" not in (run / "report.html").read_text().lower()


def test_a_repeat_that_differs_in_its_settings_says_so(tmp_path: Path, no_figures: None) -> None:
    cells = [cell("trl", repeat) for repeat in range(2)]
    cells[1]["fidelity"][0] = {**cells[1]["fidelity"][0], "in_force": 4}
    model = build_report(make_run(tmp_path, cells, adapters=("trl",)))
    assert model.fidelity[0].note == "not the same in every repeat"


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        load_manifest(tmp_path)


def test_cells_without_the_observer(tmp_path: Path, no_figures: None) -> None:
    run = make_run(tmp_path, [cell("trl")], adapters=("trl",))
    manifest = load_manifest(run)
    manifest["configs"]["trl.colocated_sync.free"]["resolved"]["observer"] = False
    (run / "manifest.json").write_text(json.dumps(manifest))
    model = build_report(run)
    assert model.rows == []
    assert any("without the observer" in caution.text for caution in model.cautions)
    assert "No figure was computed" in (run / "report.html").read_text()


def test_a_ledger_that_was_changed_is_not_measured(tmp_path: Path, no_figures: None) -> None:
    run = make_run(tmp_path, [cell("reference"), cell("trl", 0), cell("trl", 1)])
    path = run / "ledger" / "trl.colocated_sync.free.r1.rollouts.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    model = build_report(run)
    tokens = next(row for row in model.rows if row.measure == "generated_tokens" and row.adapter == "trl")
    assert tokens.n == 1
    assert tokens.reason is not None
    assert "not the one that was written" in tokens.reason
    assert any(caution.about == "ledger check" for caution in model.cautions)
