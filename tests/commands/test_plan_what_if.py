"""`rlaxes plan what-if` and its check."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.commands.words import EXIT_USAGE
from tests.ingest.foreign import ingested

CELL = Path(__file__).resolve().parents[1] / "data" / "measured_cell"
QUICK = ["resamples=2", "batches=10"]


def asked(command: str, *words: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["plan", command, *words, "--json"])
    told: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, told


def test_each_layout_has_a_prediction_with_its_interval() -> None:
    code, told = asked("what-if", str(CELL), "lag_bound=1,2", *QUICK)
    assert code == 0
    rows = {(row["layout"], row["lag_bound"]): row for row in told["predictions"]}
    assert [*rows] == [
        ("colocated_sync", 0),
        ("colocated_overlap", 0),
        ("disaggregated_sync", 0),
        ("disaggregated_async", 1),
        ("disaggregated_async", 2),
    ]
    held = told["calibration"]
    assert sum(held["parts_s"].values()) == pytest.approx(held["period_s"]) == pytest.approx(0.0989, abs=1e-4)
    assert rows["disaggregated_sync", 0]["ratio"] == pytest.approx(1, abs=0.02)
    assert all(row["interval"]["period_s"][0] <= row["interval"]["period_s"][1] for row in rows.values())
    assert rows["disaggregated_async", 2]["lag_max"] == 2
    assert any("contention" in line for line in told["not_held"])


def test_splits_multiply_disaggregated_layouts_alone() -> None:
    _, told = asked("what-if", str(CELL), "replicas=1,2", "ranks=1,2", "lag_bound=2", *QUICK)
    assert [row["layout"] for row in told["predictions"]].count("disaggregated_async") == 4
    assert [row["layout"] for row in told["predictions"]].count("colocated_sync") == 1


def test_a_prediction_is_compared_with_what_was_measured(tmp_path: Path) -> None:
    """The cell that it was calibrated on is predicted with an error of its own spread, and of nothing at its own
    pace but that."""
    told = CliRunner().invoke(app, ["plan", "what-if", str(CELL), *QUICK, "--json"]).stdout
    (tmp_path / "prediction.json").write_text(told)
    code, compared = asked("what-if-check", str(tmp_path / "prediction.json"), str(CELL))
    assert code == 0
    (row,) = compared["cells"]
    assert (row["layout"], len(row["repeats_s"])) == ("disaggregated_sync", 1)
    assert abs(row["error"]) < 0.05
    assert row["relative_error"] == pytest.approx(json.loads(told)["predictions"][2]["ratio"] - 1)
    shown = CliRunner().invoke(app, ["plan", "what-if-check", str(tmp_path / "prediction.json"), str(CELL)])
    assert "disaggregated_sync" in shown.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["what-if", str(CELL), "lag=2"], "there is no setting lag; did you mean lag_bound?"),
        (["what-if", str(CELL), "layout=colocated"], "layout=colocated: no such layout"),
        (["what-if", str(CELL), "replicas=0"], "replicas=0"),
        (["what-if", str(CELL), "lag_bound=-1"], "it must not be negative"),
        (["what-if", str(CELL), "batches=3"], "batches=3: at least 10"),
        (["what-if", str(CELL), "cell=reference.colocated_sync.free"], "has no such cell that is ok"),
        (["what-if", "nowhere"], "no run nowhere"),
        (["what-if-check", str(CELL / "manifest.json"), str(CELL)], "is not what `plan what-if --json` printed"),
        (["what-if-check", "nowhere.json", str(CELL)], "nowhere.json is not what"),
    ],
)
def test_bad_input_is_one_line(words: list[str], says: str) -> None:
    code, told = asked(*words)
    assert code == EXIT_USAGE
    assert says in told["error"]
    assert "\n" not in told["error"]


LOG = CELL.parent / "real_logs" / "verl" / "verl_grpo_npfloat_2025-12.log"


@pytest.fixture(scope="module")
def log_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (told,) = ingested(tmp_path_factory.mktemp("runs"), LOG)
    return Path(told["ledger"]).parent


def test_a_log_predicts_its_own_step_and_says_that_it_was_replayed(log_run: Path) -> None:
    words = "placement=colocated", "batch.groups=1", "group_size=2", *QUICK
    code, told = asked("what-if", str(log_run), *words)
    assert (code, told["evidence"]) == (0, "replayed from logs")
    assert "measured here" not in json.dumps(told)
    rows = {row["layout"]: row for row in told["predictions"]}
    assert rows["colocated_sync"]["ratio"] == pytest.approx(1, abs=0.03)
    assert rows["colocated_sync"]["split"] == "as logged"
    assert "give transfer_s=" in rows["disaggregated_async"]["refused"]
    held = told["calibration"]
    assert held["parts"]["generate"]["keys"] == ["timing_s/gen"]
    assert sum(part["share"] for part in held["parts"].values()) == pytest.approx(1)
    assert held["tokens_per_batch"] == pytest.approx(2 * held["completion_tokens"])
    for thing in ("stragglers", "KV cache", "partial rollouts", "pauses", "asynchronous loop"):
        assert any(thing in line for line in told["not_held"]), thing


def test_what_a_log_predicts_is_held_against_no_cell(log_run: Path, tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["plan", "what-if", str(log_run), "placement=colocated", *QUICK, "--json"]).stdout
    (tmp_path / "prediction.json").write_text(told)
    code, answer = asked("what-if-check", str(tmp_path / "prediction.json"), str(CELL))
    assert code == EXIT_USAGE
    assert "was replayed from logs: no cell of a run is of the loop that was logged" in answer["error"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give placement=colocated (generation and training on the same devices) or placement=disaggregated"),
        (["placement=apart"], "placement=apart: give placement=colocated"),
        (["placement=colocated", "replicas=2"], "a log does not tell how seconds of a stage change with devices"),
        (["placement=colocated", "group_size=2"], "give both, or neither"),
        (["placement=colocated", "batch.groups=0", "group_size=2"], "at least one completion"),
        (["placement=disaggregated", "transfer_s=2"], "transfer_s= is for a log of a colocated run"),
        (["placement=colocated", "transfer_s=-2"], "transfer_s=-2: it must not be negative"),
        (["placement=colocated", "cell=x"], "there is no setting cell"),
    ],
)
def test_what_a_log_has_to_be_told_is_one_line(log_run: Path, words: list[str], says: str) -> None:
    code, told = asked("what-if", str(log_run), *words)
    assert code == EXIT_USAGE
    assert says in told["error"]
    assert "\n" not in told["error"]


def test_an_asynchronous_log_shows_busy_seconds_and_no_prediction(tmp_path: Path) -> None:
    (told,) = ingested(tmp_path, LOG.parents[1] / "openrlhf" / "openrlhf_0.11.2_async_8_rounds.log")
    run = str(Path(told["ledger"]).parent)
    code, answer = asked("what-if", run)
    assert code == 0
    assert answer["calibration"]["parts"]["forward_backward"]["mean_s"] == pytest.approx(0.757, abs=1e-3)
    assert all(row["refused"] for row in answer["predictions"])
    shown = CliRunner().invoke(app, ["plan", "what-if", run]).stdout
    assert "how long each stage was busy" in shown
