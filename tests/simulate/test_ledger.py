"""A simulated run is a run: its ledger is lawful, whatever happens in it, and measures read it unchanged."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.audit import check_run
from harness.contract import read_cell
from harness.contract.schema import TABLES
from harness.errors import UserError
from harness.measure.api import MeasureContext, measure_cell
from harness.report.build import build_report
from harness.report.measured import load_manifest
from tests.simulate.worlds import BATCH, figures, run

RUNS = {
    "synchronous": ("synchronous", []),
    "deep": ("deep", []),
    "parts": ("shallow", [BATCH, "rollout.request=part", "rollout.slots=8", "rollout.kv_tokens=9000", "order=asked",
                          "lag_bound=2", "staleness.sync_every=3"]),
    "groups": ("deep", ["rollout.request=group", "rollout.slots=12", "rollout.kv_tokens=9000",
                        "verifier.timeout_s=0.06"]),
    "stale": ("deep", ["staleness.max_lag=3", "staleness.max_age_s=4", "staleness.ess_floor=0.99"]),
    "several updates": ("shallow", ["batch={groups: 4, tokens: null, minibatches: 2, inner_epochs: 2}", "order=asked",
                                    "lag_bound=4", "queue.tokens=null", "staleness.stale_epochs=1",
                                    "publication.in_flight=wait", "steps=18"]),
    "replicas die": ("deep", ["rollout.mtbf_s=60", "rollout.repair_s=2"]),
    "the job dies": ("shallow", ["trainer.mtbf_s=8", "trainer.restart_s=1", "checkpoint.every=2",
                                 "checkpoint.seconds=0.3"]),
    "all die": ("deep", ["trainer.mtbf_s=8", "rollout.mtbf_s=60", "rollout.repair_s=2", "checkpoint.every=2",
                         "checkpoint.seconds=1", "checkpoint.background=true", "checkpoint.queue=discard"]),
    "dies while it publishes": ("shallow", ["trainer.mtbf_s=3", "trainer.restart_s=1", "publication.activate_s=0.6",
                                            "checkpoint.every=1"]),
    "dies in a long save": ("shallow", ["trainer.mtbf_s=9", "checkpoint.every=1", "checkpoint.seconds=4",
                                       "checkpoint.background=true"]),
    "no checkpoint": ("shallow", ["trainer.mtbf_s=12"]),
}  # fmt: skip


@pytest.mark.parametrize(("overlap", "words"), RUNS.values(), ids=RUNS)
def test_its_ledger_is_lawful(tmp_path: Path, overlap: str, words: list[str]) -> None:
    folder, (done,) = run(tmp_path, "seconds=25", *words, overlap=overlap)
    assert check_run(folder) == []
    assert done.steps > 0


def test_measures_read_it_unchanged(tmp_path: Path) -> None:
    folder, (done,) = run(tmp_path, "seconds=40", overlap="deep")
    config = load_manifest(folder)["configs"]["simulator.deep.simulated"]["resolved"]
    values = {v.name: v.value for v in measure_cell(_ledger(folder), MeasureContext(config["task"], 0))}
    figures = done.figures
    assert values["lag_max"] == figures["lag_max"]
    assert values["period_seconds"] == pytest.approx(figures["period_s"], rel=0.1)
    assert values["queue_depth_max[tokens]"] <= figures["depth_max_tokens"]
    assert values["queue_overshoot[tokens]"] == figures["overshoot_tokens"]
    assert values["ess_tokens_share"] == pytest.approx(figures["ess_tokens"], rel=0.05)


def test_what_is_synthetic_says_so(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, "seconds=10")
    manifest = load_manifest(folder)
    assert "synthetic" in manifest["simulated"]
    assert "synthetic" in manifest["adapters"]["simulator"]["capabilities"]["simulated"]
    assert _ledger(folder, "shallow").manifest["log_ratios"].startswith("synthetic")
    model = build_report(folder)
    assert any("synthetic" in caution.text for caution in model.cautions)


def test_the_same_seed_writes_the_same_ledger(tmp_path: Path) -> None:
    words = ("seconds=15", "rollout.mtbf_s=60", "trainer.mtbf_s=8", "checkpoint.every=2")
    ledgers = [_ledger(run(tmp_path / name, *words)[0], "shallow") for name in ("one", "two")]
    for table in set(TABLES) - {"manifest"}:
        first, second = (pq.read_table(ledger.path(table)) for ledger in ledgers)
        names = [name for name in first.column_names if name != "run_id"]
        assert first.select(names).equals(second.select(names)), table


def test_lengths_and_durations_from_a_ledger(tmp_path: Path) -> None:
    folder, (done,) = run(tmp_path, "seconds=40", "verifier.seconds=0.03")
    source = f"name: measured, run: {folder}, cell: simulator.shallow.simulated.r0"
    again = figures(
        "seconds=40",
        f"response_tokens={{{source}, of: response_tokens}}",
        f"verifier.seconds={{{source}, of: verdict}}",
    )
    assert again["tokens_per_s"] == pytest.approx(done.figures["tokens_per_s"], rel=0.1)
    for of, says in {"checkpoint": "holds no checkpoint", "lengths": "measures no such thing"}.items():
        with pytest.raises(UserError, match=says):
            figures(f"verifier.seconds={{{source}, of: {of}}}")
    with pytest.raises(UserError, match="no sealed ledger"):
        figures(f"verifier.seconds={{name: measured, run: {tmp_path}, cell: none, of: verdict}}")


def test_a_run_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="unstable"):
        run(tmp_path, "queue.tokens=null")
    assert not list(tmp_path.iterdir())


def test_the_settings_are_in_the_manifest(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, "seconds=8", "rollout.replicas=5")
    told = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert told["configs"]["simulator.shallow.simulated"]["resolved"]["simulated"]["rollout"]["replicas"] == 5


def _ledger(folder: Path, overlap: str = "deep"):  # type: ignore[no-untyped-def]
    return read_cell(folder / "ledger", f"simulator.{overlap}.simulated.r0")
