"""Writes a run in the neutral form of rlaxes into a database of trackio: `to_trackio.py CONTENT.json FOLDER`.

Runs in the environment of `locks/tools.txt`, alone. A project is a run of rlaxes; each cell, and each column with its
medians, is a run of it, with the column as its group. Ends with 5 where the project is there already.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[2])
os.environ["TRACKIO_DIR"] = str(FOLDER)  # read when trackio is imported

import trackio  # noqa: E402
from trackio.sqlite_storage import SQLiteStorage  # noqa: E402

THERE_ALREADY = 5


def main() -> None:
    """Read the content, write the project."""
    content = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    project = content["run_id"]
    if SQLiteStorage.get_project_db_path(project).exists():
        sys.exit(THERE_ALREADY)
    for run in content["runs"]:
        logged = write_run(run, content)
        # trackio warns and goes on where it could not write, so what it wrote is counted.
        if (kept := SQLiteStorage.get_log_count(project, run["name"])) != logged:
            sys.exit(f"of {run['name']} it kept {kept} of {logged} points")


def write_run(run: dict[str, Any], content: dict[str, Any]) -> int:
    """One run: its figures at step 0, then its curves; how many points were logged. Settings, units, and what has no
    value and why are its config."""
    absent = {f["name"]: f["reason"] or f["state"] for f in run["figures"] if f["value"] is None} | run["missing"]
    units = {f["name"]: f["unit"] for f in run["figures"] if f["value"] is not None}
    told = {key: run[key] for key in ("kind", "repeat", "status", "cause", "reason", "started", "wall_s")}
    trackio.init(
        project=content["run_id"],
        name=run["name"],
        group=run["group"],
        config=run["parameters"] | {"rlaxes_run": told, "absent": absent, "units": units, "judged": run["judged"]},
        embed=False,
        auto_log_cpu=False,
        auto_log_gpu=False,
    )
    points = [(0, figures(run)), *curves(run)]
    for step, values in points:
        trackio.log(values, step=step)
    trackio.finish()
    return len(points)


def figures(run: dict[str, Any]) -> dict[str, float]:
    """Values and ends of intervals by name."""
    return {name: float(value) for figure in run["figures"] for name, value in figure["numbers"].items()}


def curves(run: dict[str, Any]) -> list[tuple[int, dict[str, float]]]:
    """Step and values of each point that has any."""
    points = []
    for series in run["series"]:
        for place, x in enumerate(series["x"]):
            values = {name: column[place] for name, column in series["columns"].items() if column[place] is not None}
            points += [(x, values)] if values else []
    return points


if __name__ == "__main__":
    main()
