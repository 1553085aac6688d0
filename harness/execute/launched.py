"""A run whose parts go to machines that a launcher chooses: submit, wait, and put together what each part left."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from harness.cluster.job import Job
from harness.cluster.launchers import Ended, launch
from harness.errors import CannotTell, SystemFailure
from harness.execute.parts import Part
from harness.execute.plan import PlannedCell
from harness.execute.provenance import adapter_facts, configurations, rlaxes_version
from harness.execute.run_folder import PARTS, RunFolder, lock_part, part_manifest

POLL_SECONDS = 5.0
Row = dict[str, Any]
FROM_FIRST = ("machine", "load", "bundle", "roofline")
"""What a manifest says once; in `machines` each machine has its own."""
TOGETHER = ("locks", "machines", "configs", "adapters")
IN_TURN = ("start_order", "null_cells", "torn", "redone")


def run_parts(
    run: RunFolder,
    parts: Sequence[Part],
    asked: Mapping[str, Any],
    console: Console,
    *,
    judge: Callable[..., Any] | None,
    redo: bool,
) -> None:
    """Run every part that has not ended, each as one job of the launcher, and write the manifest of all.

    A part whose job died leaves rows with the cause infrastructure, and the run unfinished: the same command submits
    it again and keeps what had ended. A job that an earlier command submitted and that still runs is waited for.

    Args:
        asked: the chosen option of `conf/launcher`.
        judge, redo: as of `run_session`; the judge has to be found by its name on every machine.

    Raises:
        UserError, PrerequisiteError: the launcher cannot be used as asked; nothing was submitted.
        CannotTell, SystemFailure: the A/A test of a part stopped it, as in `work`; the other parts went on.
    """

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    cells = [cell for part in parts for cell in part.cells]
    run.manifest |= {
        "rlaxes": rlaxes_version(),
        "profile": cells[0].config["profile"]["name"],
        "configs": configurations(cells),
        "adapters": adapter_facts(cells),
        "finished": None,
    }
    run.save()
    for part in parts:
        _wait_for_earlier(run, part, say)
    left = [part for part in parts if not _ended(run, part)]
    named = f"{judge.__module__}:{judge.__qualname__}" if judge else None
    jobs = [_job(run, part, {"judge": named, "redo": redo}) for part in left]
    at_once = 1 if asked["one_machine"] else max(len(jobs), 1)
    done = launch(jobs, run.path / PARTS, asked, at_once, say) if jobs else []
    died = {job.name: job for job in done if job.died is not None}
    for part in left:
        _wait_for_earlier(run, part, say)
    _put_together(run, parts, died)
    if stopped := [job for name, job in died.items() if _stopped(part_manifest(run.path, name))]:
        kind = CannotTell if any(job.kind == CannotTell.__name__ for job in stopped) else SystemFailure
        raise kind("; ".join(f"part {job.name}: {job.died}" for job in stopped))


def _job(run: RunFolder, part: Part, asked: Mapping[str, Any]) -> Job:
    keys = [cell.key for cell in part.cells]
    given = {"folder": str(run.path.resolve()), "part": part.as_data(), "keys": keys, **asked}
    return Job(part.name, "harness.execute.part_job:run_part", given)


def _stopped(manifest: Mapping[str, Any] | None) -> bool:
    """Whether a part ended before its comparison began, because of its A/A test."""
    return bool(((manifest or {}).get("null_test") or {}).get("stopped"))


def _ended(run: RunFolder, part: Part) -> bool:
    """Whether its job came to its end: its manifest says so, and every cell has its row."""
    finished = (part_manifest(run.path, part.name) or {}).get("finished")
    return bool(finished) and all(run.done(cell) is not None for cell in part.cells)


def _wait_for_earlier(run: RunFolder, part: Part, say: Any) -> None:
    said = False
    while (lock := lock_part(run.path, part.name)) is None:
        if not said:
            say(f"waiting for the job of part {part.name}, which still runs")
        said = True
        time.sleep(POLL_SECONDS)
    lock.close()


def _put_together(run: RunFolder, parts: Sequence[Part], died: Mapping[str, Ended]) -> None:
    manifests = [part_manifest(run.path, part.name) or {} for part in parts]
    said: dict[str, Any] = {}
    for manifest in reversed(manifests):
        said |= {key: manifest[key] for key in FROM_FIRST if key in manifest}
    for key in TOGETHER:
        said[key] = {name: value for manifest in manifests for name, value in manifest.get(key, {}).items()}
    for key in IN_TURN:
        said[key] = [one for manifest in manifests for one in manifest.get(key, [])]
    nulls = {part.name: manifest.get("null_test") for part, manifest in zip(parts, manifests, strict=True)}
    said |= {"null_tests": nulls} if parts[0].split else {"null_test": nulls[parts[0].name] or {}}
    said["cells"] = [
        row
        for part, manifest in zip(parts, manifests, strict=True)
        for row in _rows(run, part, manifest, died[part.name].died if part.name in died else None)
    ]
    run.manifest |= said
    ended = all(_ended(run, part) for part in parts)
    run.manifest["finished"] = datetime.now(UTC).isoformat(timespec="seconds") if ended else None
    run.save()


def _rows(run: RunFolder, part: Part, manifest: Mapping[str, Any], died: str | None) -> list[Row]:
    """The rows of a part; in a split each says which part it is of."""
    machine = (manifest.get("machine") or {}).get("id")
    reason = died or "it ended before all of its cells had"
    done = [(cell, run.done(cell)) for cell in part.cells]
    rows = [row or _lost(run, cell, machine, reason) for cell, row in done if row or not _stopped(manifest)]
    return [row | {"part": part.name} for row in rows] if part.split else rows


def _lost(run: RunFolder, cell: PlannedCell, machine: str | None, reason: str) -> Row:
    """The row of a cell whose job died: the one that it died at has failed, those after it did not run."""
    began = run.cell(cell.cell_id).exists()
    verdict = {"status": "failed" if began else "not_run", "cause": "infrastructure"}
    return {
        "cell_id": cell.cell_id,
        "adapter": cell.label,
        "system": cell.system,
        "fault": cell.config["fault"]["name"],
        "twin": cell.twin,
        "layout": cell.config["layout"]["name"],
        "track": cell.config["track"]["name"],
        "repeat": cell.repeat,
        "key": cell.key,
        "made_of": cell.made_of,
        "machine": machine,
        **verdict,
        "reason": f"its job {'died while it ran' if began else 'died before it'}: {reason}",
        "started": None,
        "load_before": None,
        "load_after": None,
        "wall_s": None,
        "peak_bytes": None,
        "foreign_cores": None,
        "foreign_reason": "it did not run to its end",
        "fidelity": [],
        "attempts": [],
        "result": None,
    }
