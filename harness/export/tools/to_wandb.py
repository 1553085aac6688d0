"""Writes a run in the neutral form of rlaxes as offline runs of W&B: `to_wandb.py CONTENT.json FOLDER`.

Runs in the environment of `locks/tools.txt`, alone. Each cell, and each column with its medians, is a run of the
project `rlaxes` whose group is the run of rlaxes; `wandb sync FOLDER/wandb/offline-run-*` sends them where the user
wants them. Ends with 5 where one of them is there already.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import wandb

THERE_ALREADY = 5
PROJECT = "rlaxes"
AXES = {"step": ["per_step/*"], "samples": ["per_batch/*"], "milliseconds": ["over_time/*"]}


def main() -> None:
    """Read the content, write the runs."""
    content = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(sys.argv[2])
    if any(folder.glob(f"offline-run-*-{content['run_id']}*")):
        sys.exit(THERE_ALREADY)
    for run in content["runs"]:
        write_run(run, content, folder)
    wandb.teardown()
    remove_logs(folder)


def write_run(run: dict[str, Any], content: dict[str, Any], folder: Path) -> None:
    """One offline run: settings and what has no value in its config, curves in its history, figures in its summary."""
    quiet = wandb.Settings(
        mode="offline", console="off", silent=True, save_code=False, disable_git=True, x_disable_meta=True,
        x_disable_stats=True, x_save_requirements=False, host="",
    )  # fmt: skip
    absent = {f["name"]: f["reason"] or f["state"] for f in run["figures"] if f["value"] is None} | run["missing"]
    units = {f["name"]: f["unit"] for f in run["figures"] if f["value"] is not None}
    told = {key: run[key] for key in ("kind", "group", "repeat", "status", "cause", "reason", "started", "wall_s")}
    with wandb.init(
        project=PROJECT,
        dir=folder.parent,  # below it W&B makes a folder `wandb`
        id=f"{content['run_id']}-{run['name']}",
        name=run["name"],
        group=content["run_id"],
        job_type=run["kind"],
        tags=[run["kind"], run["status"]],
        config=run["parameters"] | {"rlaxes_run": told, "absent": absent, "units": units, "judged": run["judged"]},
        settings=quiet,
    ) as written:
        for axis, names in AXES.items():
            written.define_metric(axis, hidden=True)
            for name in names:
                written.define_metric(name, step_metric=axis)
        for series in run["series"]:
            for place, x in enumerate(series["x"]):
                values = {key: column[place] for key, column in series["columns"].items() if column[place] is not None}
                written.log({series["axis"]: x} | values)
        numbers = {name: float(value) for figure in run["figures"] for name, value in figure["numbers"].items()}
        written.summary.update(numbers)
        written.finish(exit_code=0 if run["status"] == "ok" else 1)


def remove_logs(folder: Path) -> None:
    """Take away what W&B logs of its own work, and its links to the newest run: they name this machine's folders."""
    for path in (*folder.glob("debug*.log"), folder / "latest-run"):
        path.unlink(missing_ok=True)
    for path in (*folder.glob("offline-run-*/logs"), *folder.glob("offline-run-*/tmp")):
        shutil.rmtree(path)


if __name__ == "__main__":
    main()
