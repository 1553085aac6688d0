"""A folder of published results for the tests: three runs, a correction, pages of words. Its numbers are invented."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.report.model import Figure
from harness.report.seals import write_seal
from tests.report.reports import HOSTILE, report
from tests.report.runs import manifest

SIZE = 'width="600" height="200"'
PICTURE = f'<svg xmlns="http://www.w3.org/2000/svg" {SIZE}><rect {SIZE} fill="#69a"/></svg>'
FIRST, SECOND, ELSEWHERE = "2026-11-28-090000-aa01", "2026-11-29-090000-bb02", "2026-11-30-090000-cc03"
WORDS = """# A sweep over lags

See [the run](2026-11-29-090000-bb02/report.md), [the data](data.json), [the code](../../../harness/cli.py),
[the web](https://example.org/page), [bad](javascript:alert(1)) and [the other page](../../2026-11-28/public/tables.md).

<script>alert('words')</script> ![picture](https://example.org/x.png)

## What grows

| bound | period |
|---|---|
| 4 | seldomword |
"""
AXES = {"placement": {"declared": "colocated", "values": ["colocated"], "source": "x.py", "date": "2026-11-29"}}
ADAPTERS: dict[str, dict[str, Any]] = {
    "areal": {"title": "AReaL", "version": "1.0.4", "axes": AXES},
    "trl": {
        "title": "TRL",
        "version": "1.16.0",
        "axes": AXES | {"placement": AXES["placement"] | {"values": ["colocated", "external"]}},
    },
}


def write_run(results: Path, run_id: str, *, version: str = "1.16.0", **changed: Any) -> Path:
    """A published run of `reference` and `trl`, as it stands in `results/`."""
    folder = results / run_id[:10] / "cpu" / run_id
    (folder / "figures").mkdir(parents=True)
    model = report()
    model.run_id, model.created = run_id, f"{run_id[:10]}T09:00:00+00:00"
    model.adapters["trl"]["version"] = version
    model.figures = [Figure(name, name, "What it shows.", f"{name} in words", None) for name in ("timeline", "lag")]
    said = manifest(model.cells, run_id=run_id, created=model.created) | changed
    said["adapters"]["trl"]["version"] = version
    content = json.dumps(model.as_dict())
    (folder / "report.json").write_text(content, encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "report.html").write_text(f"<!doctype html><title>{run_id}</title>", encoding="utf-8")
    for figure in model.figures:
        (folder / "figures" / f"{figure.name}.svg").write_text(PICTURE, encoding="utf-8")
    return folder


def correct(published: Path, **changed: Any) -> None:
    content: Mapping[str, Any] = {
        "of": published.name,
        "number": 1,
        "date": "2026-12-01",
        "what": f"the reward was of another verifier {HOSTILE}",
        "why": "found by reading",
        "by": None,
        "withdrawn": True,
        "rows": ["trl/*/*/lag_max"],
    }
    path = published.with_name(f"{published.name}.correction-1.yaml")
    path.write_text(yaml.safe_dump({**content, **changed}, allow_unicode=True), encoding="utf-8")


def write_results(results: Path) -> Path:
    """Two runs of the same settings and machine, one of another machine; a corrected one; two pages."""
    first = write_run(results, FIRST, version="1.15.0")
    write_run(results, SECOND)
    machine = manifest([])["machine"] | {"cpu_model": "Another"}
    write_run(results, ELSEWHERE, machine=machine)
    for run in results.glob("*/*/*"):
        write_seal(run, "measured here", run.name[:10])
    correct(first)
    for name, text in {
        "README.md": "# Published results\n",
        "2026-11-29/cpu/sweep.md": WORDS,
        "2026-11-29/cpu/data.json": "{}",
        "2026-11-28/public/tables.md": "# What others printed\n\n[back](../../README.md)\n",
    }.items():
        path = results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix != ".md" or path.parent != results:
            write_seal(path, "author-reported" if "public" in name else "measured here")
    return results
