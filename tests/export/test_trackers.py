"""MLflow's client, trackio's API and W&B's `leet inspect` read back what was written for them. The environment of the
tools is made once (76 MB, some twenty seconds)."""

import json
import math
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import PrerequisiteError, UserError
from harness.execute.uv_process import mute
from harness.export.content import Content, Figure, content_of
from harness.export.trackers import TRACKERS, export_environment, write_tracker
from harness.ingest.readers.wandb_offline import WandbRun
from harness.report.model import ReportModel
from tests.export.conftest import UNFINISHED

READERS = Path(__file__).parent / "read_back"
Points = dict[str, list[list[float]]]


@pytest.fixture(scope="module")
def python() -> Path:
    return export_environment(mute).python


@pytest.fixture(scope="module")
def infinite(model: ReportModel) -> Content:
    """The run, with a cost that is infinite."""
    rows = [row if row.measure != "cost_device_seconds" else _infinite(row) for row in model.rows]
    return content_of(replace(model, rows=rows))


def _infinite(row: Any) -> Any:
    return replace(row, value=math.inf, low=None, high=None, repeats=(math.inf, math.inf, None))


@pytest.fixture(scope="module")
def stores(infinite: Content, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    for tool in TRACKERS:
        write_tracker(tool, infinite, folder / tool, python)
    return folder


@pytest.fixture(scope="module")
def from_mlflow(infinite: Content, stores: Path, python: Path) -> dict[str, Any]:
    return _read("mlflow", stores, python, infinite.run_id)


def _read(tool: str, stores: Path, python: Path, run_id: str) -> dict[str, Any]:
    command = [str(python), "-I", str(READERS / f"read_{tool}.py"), str(stores / tool), run_id]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _numbers(figures: list[Figure]) -> dict[str, float]:
    """Finite values and ends of intervals by the names that they have in a tool."""
    return {name: value for f in figures for name, value in f.numbers.items() if math.isfinite(value)}


def _curves(content: Content, run: str) -> Points:
    series = next(one.series for one in content.runs if one.name == run)
    columns = {name: (one.x, column) for one in series for name, column in one.columns.items()}
    points = {name: [[x, y] for x, y in zip(*both, strict=True) if y is not None] for name, both in columns.items()}
    return {name: sorted(found) for name, found in points.items() if found}


def test_mlflow_reads_every_figure_and_curve_back(infinite: Content, from_mlflow: dict[str, Any]) -> None:
    read = from_mlflow
    assert set(read) == {run.name for run in infinite.runs}
    for run in infinite.runs:
        told = read[run.name]
        found = {name: [point[:2] for point in points] for name, points in told["metrics"].items()}
        curves = _curves(infinite, run.name)
        assert {name: points for name, points in found.items() if name not in curves} == {
            name: [[0, value]] for name, value in _numbers(run.figures).items()
        }
        assert {name: sorted(found[name]) for name in curves} == curves
        assert told["params"] == {key: str(value) for key, value in run.parameters.items()}
        assert told["artifacts"] == ["figures.json"]


def test_mlflow_has_what_is_no_number_as_a_tag(infinite: Content, from_mlflow: dict[str, Any]) -> None:
    read = from_mlflow
    for run in infinite.runs:
        tags = read[run.name]["tags"]
        absent = {f"absent.{f.name}": f.reason for f in run.figures if f.value is None}
        assert absent.items() <= tags.items()
        assert ("infinite.cost/cost_device_seconds" in tags) is (run.status == "ok")
    column, first, _, failed = (read[run.name] for run in infinite.runs)
    assert first["tags"]["mlflow.parentRunId"] == column["id"]
    assert (first["status"], failed["status"], failed["tags"]["reason"]) == ("FINISHED", "FAILED", UNFINISHED)


def test_trackio_reads_every_figure_and_curve_back(infinite: Content, stores: Path, python: Path) -> None:
    read = _read("trackio", stores, python, infinite.run_id)
    assert set(read) == {run.name for run in infinite.runs}
    for run in infinite.runs:
        points: Points = {}
        for log in read[run.name]["logs"]:
            for name, value in log.items():
                if name not in {"step", "timestamp"} and math.isfinite(value):
                    points.setdefault(name, []).append([log["step"], value])
        curves = _curves(infinite, run.name)
        assert {name: sorted(points[name]) for name in curves} == curves
        assert {name: found for name, found in points.items() if name not in curves} == {
            name: [[0, value]] for name, value in _numbers(run.figures).items()
        }
        config = read[run.name]["config"]
        assert run.parameters.items() <= config.items()
        assert config["absent"] == {f.name: f.reason for f in run.figures if f.value is None} | run.missing


def _inspect(stores: Path, python: Path, run: str, home: Path, *words: str) -> str:
    """What W&B's own reader of its files prints of a run."""
    (path,) = (stores / "wandb").glob(f"offline-run-*-{run}/run-*.wandb")
    command = [str(python.with_name("wandb")), "leet", "inspect", "--json", *words, str(path)]
    return subprocess.run(
        command, env={"HOME": str(home), "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True
    ).stdout


def test_wandb_reads_every_figure_and_curve_back(infinite: Content, stores: Path, python: Path, tmp_path: Path) -> None:
    for run in infinite.runs:
        name = f"{infinite.run_id}-{run.name}"
        axes = {name: one.axis for one in run.series for name in one.columns}
        points: Points = {}
        for record in map(json.loads, _inspect(stores, python, name, tmp_path).splitlines()):
            item = record["history"]["item"] if record["type"] == "history" else {}
            for key in item.keys() & axes.keys():
                points.setdefault(key, []).append([item[axes[key]], item[key]])
        assert {key: sorted(found) for key, found in points.items()} == _curves(infinite, run.name)
        told = json.loads(_inspect(stores, python, name, tmp_path, "--summary"))
        found = {key: value for key, value in told["summary"].items() if "/" in key and key not in axes}
        finite = {key: value for key, value in found.items() if value != "Infinity"}
        assert finite == _numbers(run.figures)
        assert ("cost/cost_device_seconds" in found) is (run.status == "ok")
        assert (told["state"], told["exit_code"]) == (("finished", 0) if run.status == "ok" else ("failed", 1))
        absent = {f.name: f.reason for f in run.figures if f.value is None} | run.missing
        assert told["config"]["absent"] == absent
        assert run.parameters.items() <= told["config"].items()


def test_rlaxes_reads_the_files_of_wandb_too(infinite: Content, stores: Path) -> None:
    run = infinite.runs[1]
    (path,) = (stores / "wandb").glob(f"offline-run-*-{run.name}/run-*.wandb")
    with path.open("rb") as stream:
        blocks = list(WandbRun().blocks(stream, lambda line, words: pytest.fail(f"{line}: {words}")))
    (summary,) = (block.values for block in blocks if block.kind == "summary")
    assert _numbers(run.figures).items() <= summary.items()


@pytest.mark.parametrize("tool", TRACKERS)
def test_a_second_run_stands_beside_the_first_and_is_not_written_twice(
    tool: str, infinite: Content, stores: Path, python: Path, tmp_path: Path
) -> None:
    shutil.copytree(stores / tool, tmp_path / tool)
    few = replace(infinite, run_id="2026-11-30-000000-0002", runs=infinite.runs[-1:])
    write_tracker(tool, few, tmp_path / tool, python)
    with pytest.raises(UserError, match=r"is in .* already"):
        write_tracker(tool, few, tmp_path / tool, python)
    if tool == "trackio":
        assert set(_read(tool, tmp_path, python, few.run_id)) == {few.runs[0].name}


@pytest.mark.parametrize("tool", ["trackio", "wandb"])
def test_no_path_of_this_machine_is_in_a_store(tool: str, stores: Path) -> None:
    for path in (path for path in (stores / tool).rglob("*") if path.is_file()):
        assert str(stores).encode() not in path.read_bytes(), path


def test_a_tool_that_fails_says_so_in_one_line(infinite: Content, python: Path, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="wandb could not write the run") as caught:
        write_tracker("wandb", replace(infinite, runs=[replace(infinite.runs[0], name="x" * 300)]), tmp_path, python)
    assert "\n" not in str(caught.value)
