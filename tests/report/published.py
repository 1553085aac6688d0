"""Folders of results for the tests, made of the hand-made report: its numbers are invented."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.compare.rows import Row
from harness.report.model import ReportModel
from harness.report.seals import write_seal
from tests.report.reports import Direction, definitions, row
from tests.report.runs import cell, manifest

Kind = tuple[str, str, str, str, str, Direction]
SPEED: Kind = ("throughput", "output_tokens_per_second", "Output tokens/s", "", "tokens/s", "higher")
MEMORY: Kind = ("memory", "memory_peak_bytes", "Peak memory of the host", "", "bytes", "lower")


def publish_report(
    results: Path,
    day: int,
    value: float = 100.0,
    *,
    rows: list[Row] | None = None,
    task: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Path:
    """A sealed run of `reference` on the `day`-th of December 2026.

    Args:
        value: of its output tokens per second, with an interval of 2 %.
        task: changes of its settings.
        changes: of its manifest.
    """
    created, run_id = f"2026-12-{day:02}T10:00:00+00:00", f"2026-12-{day:02}-100000-{day:04x}"
    cells = [cell("reference", repeat) for repeat in range(3)]
    content = manifest(cells, ("reference",), run_id=run_id, created=created) | changes
    resolved = content["configs"]["reference.colocated_sync.free"]["resolved"]
    resolved["task"] = {**resolved["task"], **(task or {})}
    speed = row("reference", SPEED, repeats=3, value=value, low=0.99 * value, high=1.01 * value)
    report = ReportModel(
        title="a loop",
        run_id=run_id,
        created=created,
        finished=created,
        profile="cpu",
        task={"task": "arithmetic", "model": "tiny", "track": "free"},
        adapters={name: {"version": said["version"]} for name, said in content["adapters"].items()},
        cells=content["cells"],
        rows=rows if rows is not None else [speed],
        definitions=definitions(),
        provenance={"configs": content["configs"]},
    )
    folder = results / created[:10] / "cpu" / run_id
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report.as_dict()), encoding="utf-8")
    (folder / "report.md").write_text("# a loop\n", encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    write_seal(folder, "measured here", created[:10])
    return folder


def publish_page(results: Path, text: str = "# Kills\n") -> Path:
    """A sealed page."""
    page = results / "2026-12-01" / "cpu" / "kills.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    write_seal(page, "author-reported", "2026-12-01")
    return page
