"""Writes a run in the neutral form of rlaxes into an SQLite store of MLflow: `to_mlflow.py CONTENT.json FOLDER`.

Runs in the environment of `locks/tools.txt`, alone. An experiment is a run of rlaxes; a column is a parent run with
the medians, its cells are the runs below it. Curves and figures are metrics, settings are parameters, and the tag
`absent.<figure>` is the reason why a figure has no value. Ends with 5 where the experiment is in the store already.
"""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

THERE_ALREADY = 5
STATUS = {"ok": "FINISHED", "not_run": "SCHEDULED"}
"""Any other ending is FAILED. MLflow has no word for a cell that could not run; it was planned, and never started."""
METRICS_A_CALL, OTHERS_A_CALL, LONGEST = 1000, 100, 5000
"""What MLflow takes in one call, and of one tag or parameter."""


def main() -> None:
    """Read the content, write the experiment."""
    content = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(sys.argv[2])
    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    name = content["run_id"]
    if client.get_experiment_by_name(name):
        sys.exit(THERE_ALREADY)
    location = (folder / "artifacts" / name).as_uri()
    experiment = client.create_experiment(name, artifact_location=location, tags={"title": content["title"]})
    parents: dict[str, str] = {}
    for run in content["runs"]:
        parents[run["name"]] = write_run(client, experiment, run, content, parents.get(run["group"]))


def write_run(
    client: MlflowClient, experiment: str, run: dict[str, Any], content: dict[str, Any], parent: str | None
) -> str:
    """One run with all that belongs to it; its id."""
    began = round(1000 * (run["started"] or content["created"]))
    ended = began + round(1000 * (run["wall_s"] or 0.0))
    tags = {"mlflow.user": "rlaxes", "kind": run["kind"], "status": run["status"]}
    tags |= {key: run[key] for key in ("cause", "reason") if run[key]}
    tags |= {"mlflow.parentRunId": parent} if parent else {}
    tags |= {f"absent.{f['name']}": f["reason"] or f["state"] for f in run["figures"] if f["value"] is None}
    tags |= {f"absent.{name}": why for name, why in run["missing"].items()}
    tags |= {f"infinite.{f['name']}": f["value"] for f in run["figures"] if isinstance(f["value"], str)}
    tags |= {f"judged.{name}": said for name, said in run["judged"].items()}
    made = client.create_run(experiment, start_time=began, run_name=run["name"])
    run_id: str = made.info.run_id
    write_all(client, run_id, "tags", iter(RunTag(key, cut(value)) for key, value in tags.items()))
    write_all(client, run_id, "params", iter(Param(key, cut(value)) for key, value in run["parameters"].items()))
    write_all(client, run_id, "metrics", metrics(run, began, ended))
    told = {f["name"]: f | content["definitions"][f["name"]] for f in run["figures"]}
    client.log_dict(run_id, told, "figures.json")
    client.set_terminated(run_id, STATUS.get(run["status"], "FAILED"), end_time=ended)
    return run_id


def cut(value: Any) -> str:
    """A text of a length that MLflow takes; one that was cut says so."""
    text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def metrics(run: dict[str, Any], began: int, ended: int) -> Iterator[Metric]:
    """Figures at step 0 with the ends of their interval, and the curves. MLflow's store would turn an infinite value
    into the largest finite one: it is a tag instead."""
    for figure in run["figures"]:
        for key, value in figure["numbers"].items():
            if not isinstance(value, str):
                yield Metric(key, value, ended, 0)
    for series in run["series"]:
        timed = series["axis"] == "milliseconds"
        for key, column in series["columns"].items():
            for x, value in zip(series["x"], column, strict=True):
                if value is not None:
                    yield Metric(key, value, max(0, began + x) if timed else began, x)


def write_all(client: MlflowClient, run_id: str, kind: str, items: Iterator[Any]) -> None:
    """Hand over items in calls of a size that MLflow takes."""
    while batch := list(islice(items, METRICS_A_CALL if kind == "metrics" else OTHERS_A_CALL)):
        client.log_batch(run_id, **{kind: batch})


if __name__ == "__main__":
    main()
