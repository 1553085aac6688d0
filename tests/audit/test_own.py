"""What we measure of our own runs is held to the same rules: planted contradictions are found, sound cells are not."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.audit.own import FIGURES, SHARES, OwnCell, cases_of_cell, own_findings
from harness.audit.quantities import QUANTITIES
from harness.cli import app
from harness.compare.results import CellResult
from harness.measure.api import catalogue, measure_cell, series_cell
from harness.report.build import build_report
from harness.report.own import own_cell
from tests.fakes import CELL_ID, view

SOUND = {
    "window_seconds": 10.0,
    "generated_tokens": 1000.0,
    "output_tokens_per_second": 100.0,
    "output_tokens_per_second_per_device": 50.0,
    "completion_length": 4.0,
    "completion_length_max": 8.0,
    "truncated_share": 0.25,
    "reward": 0.5,
    "degenerate_fraction": 0.25,
    "token_lag[mean]": 1.0,
    "lag_max": 2.0,
    "log_ratio_max": 0.3,
    "ess_tokens_share": 0.9,
    "pool_utilisation[cuda:0]": 0.7,
    "device_memory_peak_bytes[cuda_reserved]": 70e9,
}
GIVEN = {"devices_declared": 2.0, "length_cap": 8.0, "lag_config": 2.0, "memory_card": 80e9}
SERIES = {"updates": {"step": [3, 4], "loss": [0.1, None], "grad_norm": [1.0, 1.1], "ess_share": [0.9, None]}}


def rules(figures: dict[str, float], given: dict[str, float] | None = None, **series: Any) -> list[str]:
    cell = OwnCell("reference.colocated_sync.free.r0", SOUND | figures, SERIES | series, GIVEN | (given or {}))
    return [finding.rule for finding in own_findings(cases_of_cell(cell))]


def test_a_sound_cell_is_not_accused() -> None:
    assert rules({}) == []


PLANTED: list[tuple[str, dict[str, float], dict[str, float]]] = [
    ("rate_is_not_its_counts", {"output_tokens_per_second": 130.0, "output_tokens_per_second_per_device": 65.0}, {}),
    ("devices_left_out", {}, {"devices_declared": 4.0}),
    ("length_over_cap", {"completion_length_max": 9.0}, {}),
    ("lag_beyond_config", {"lag_max": 3.0}, {}),
    ("share_outside", {"pool_utilisation[cuda:0]": 1.2}, {}),
    ("share_outside", {"ess_tokens_share": 35.0}, {}),
    ("memory_over_card", {"device_memory_peak_bytes[cuda_reserved]": 198.68e9}, {}),
    ("groups_without_spread", {"degenerate_fraction": 1.0}, {}),
    ("all_clipped", {"truncated_share": 1.0}, {}),
    ("ratio_one_with_lag", {"log_ratio_max": 0.0}, {}),
    ("rewards_all_zero", {"reward": 0.0}, {}),
]


@pytest.mark.parametrize(("rule", "figures", "given"), PLANTED, ids=[f"{n}-{p[0]}" for n, p in enumerate(PLANTED)])
def test_what_is_planted_is_found(rule: str, figures: dict[str, float], given: dict[str, float]) -> None:
    assert rule in rules(figures, given)


def test_a_step_that_runs_back_is_found_in_the_series() -> None:
    assert rules({}, updates={"step": [3, 4, 4]}) == ["step_runs_back"]


def test_names_are_those_of_the_catalogue_and_of_the_quantities() -> None:
    tags = {kind.tag for kind in catalogue()}
    assert {name.split("[")[0] for name in FIGURES} | set(SHARES) <= tags
    assert {quantity for quantity, _ in FIGURES.values()} <= QUANTITIES.keys()


def measured(folder: Path, task: dict[str, Any] | None = None, **truth: Any) -> OwnCell:
    """A cell of the fake adapter as a report sees it."""
    seen = view(folder, task, **truth)
    result = CellResult("fake", "colocated_sync", "free", 0, "ok", None, None, measure_cell(seen))
    return own_cell(CELL_ID, result, series_cell(seen), seen, {})


def test_a_cell_of_the_fake_adapter_is_sound_also_with_lag(tmp_path: Path) -> None:
    assert own_findings(cases_of_cell(measured(tmp_path / "a"))) == []
    assert (
        own_findings(
            cases_of_cell(measured(tmp_path / "b", {"minibatches": 2, "inner_epochs": 2, "steps": 12}, ahead=2))
        )
        == []
    )


def test_a_limit_that_the_cell_did_not_keep_to_is_found(tmp_path: Path) -> None:
    cell = measured(tmp_path)
    longest = cell.figures["completion_length_max"]
    short = OwnCell(cell.cell_id, cell.figures, cell.series, {**cell.given, "length_cap": longest - 1})
    (finding,) = own_findings(cases_of_cell(short))
    assert (finding.rule, finding.where.file) == ("length_over_cap", f"ledger/{CELL_ID}")
    assert f"{longest:g}" in finding.evidence
    assert len(list(cases_of_cell(short))) == 9


def test_a_run_that_was_recorded_elsewhere_is_asked_too(tmp_path: Path) -> None:
    """Of a log that was ingested, its report says what the audit of its folder says."""
    logs = tmp_path / "run.log"
    lines = [
        "step:1 - perf/mfu/actor:0.4 - timing_s/step:10.0 - timing_s/gen:6.0",
        "step:2 - perf/mfu/actor:1.018 - timing_s/step:10.0 - timing_s/gen:12.0",
    ]
    logs.write_text("\n".join(lines) + "\n", encoding="utf-8")
    runner = CliRunner()
    read = runner.invoke(app, ["ingest", str(logs), "--output", str(tmp_path / "runs"), "--json"])
    folder = Path(json.loads(read.stdout)["ledger"]).parent
    told = json.loads(runner.invoke(app, ["audit", str(folder), "--json"]).stdout)
    found = {(finding["rule"], finding["step"]) for finding in told["findings"]}
    assert found == {("mfu_over_one", 2), ("stage_exceeds_step", 2)}
    assert told["files"] == {str(folder): "run folder"}
    model = build_report(folder)
    assert {(finding["rule"], finding["step"]) for finding in model.findings} == found
    assert any("MFU 1.018" in caution.text for caution in model.cautions)
    for name in ("report.md", "report.html"):
        assert "stage_exceeds_step" in (folder / name).read_text(encoding="utf-8")
