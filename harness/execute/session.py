"""A whole run from the words on the command line to a finished run folder."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console

from harness.cluster.launchers import launcher_of
from harness.errors import CannotTell, SystemFailure, UserError
from harness.execute.compose import UNDISTURBED, Choice, compose_choices, options_of
from harness.execute.extend import join_run, redo_failed, reopen_run
from harness.execute.launched import run_parts
from harness.execute.machine import describe, load
from harness.execute.null_plan import null_facts, plan_null
from harness.execute.out_of_memory import Deaths
from harness.execute.parts import parts_of
from harness.execute.plan import PlannedCell
from harness.execute.prepare import Prepared, prepare
from harness.execute.progress import Display
from harness.execute.provenance import adapter_facts, configurations, rlaxes_version
from harness.execute.run_folder import RunFolder, open_run
from harness.execute.runner import Runner

Judge: TypeAlias = Callable[[Path, dict[str, Any]], dict[str, Any]]
DRILL_WORDS = ("repeats=1", "adapter.checkpoint.every=2")
"""What a drill runs with where its words do not say: nothing can be restored that was not kept."""


def choices_of(overrides: Sequence[str], *, single: bool) -> list[Choice]:
    """The combinations that the words ask for.

    Raises:
        UserError: `single` is set and they are more than one.
    """
    words = [*overrides, "repeats=1"] if single else list(overrides)
    choices = compose_choices(words)
    if single and len(choices) > 1:
        raise UserError("`run` takes one adapter, one layout and one track; for several use `compare`")
    return choices


def drill_choices(overrides: Sequence[str]) -> list[Choice]:
    """The combinations of a drill: each fault that the words name, and the same undisturbed. Once each and with a
    checkpoint every second batch, unless the words say otherwise.

    Raises:
        UserError: they name no fault.
    """
    named = [word.partition("=")[2].split(",") for word in overrides if word.startswith("fault=")]
    faults = sorted({UNDISTURBED, *(fault for group in named for fault in group)})
    if len(faults) == 1:
        raise UserError(f"a drill needs a fault: write fault=..., one or several of {', '.join(options_of('fault'))}")
    words = [word for word in overrides if not word.startswith("fault=")]
    given = "".join(f" {word}" for word in words)
    words += [word for word in DRILL_WORDS if f" {word.rpartition('=')[0]}=" not in given]
    return compose_choices([*words, f"fault={','.join(faults)}"])


@dataclass(frozen=True)
class NullPlan:
    """The A/A test of a plan: its cells, and who judges them.

    Attributes:
        judge: from the folder of the run and its manifest to what the manifest is to say of the test; in `stopped`
            why the plan cannot go on, or None.
    """

    cells: list[PlannedCell]
    judge: Judge


def run_session(
    choices: Sequence[Choice],
    console: Console,
    *,
    into: Path | None = None,
    redo: bool = False,
    judge_null: Judge | None = None,
) -> Path:
    """Plan, prepare, run; resumes the unfinished run of the same plan. Returns the folder of the run.

    Args:
        into: a run to add the cells to; those that it has already are kept.
        redo: run those again that failed, in `into`, or else in the newest run of the same plan.
        judge_null: who judges the A/A test of the plan; without one there is none.

    Raises:
        UserError, PrerequisiteError: nothing could be started.
        CannotTell: the A/A test says that the machine could not tell a difference now.
        SystemFailure: its cells did not end well.
    """
    launcher, output = choices[0].config["launcher"], Path(choices[0].config["output"])
    here = launcher["plugin"] is None
    parts = parts_of(choices, launcher["split"])
    cells = [cell for part in parts for cell in part.cells]
    if into is not None and not here:
        raise UserError(f"--into adds what runs on this machine; launcher={launcher['name']} starts a run of its own")
    if not here:
        launcher_of(launcher, output)  # refused, if it is, before there is a run
    if into is not None:
        run = join_run(into, cells)
    elif redo:
        run = reopen_run(output, cells)
    else:
        run = open_run(output, cells)
    if choices[0].version:
        run.manifest["baseline"] = choices[0].label
    null = NullPlan(plan_null(choices), judge_null) if judge_null else None
    if null and not run.holds_only(null.cells, "null_cells"):
        null = None  # the run has had its test, of a column that these choices need not hold
    try:
        again = redo_failed(run, [*(null.cells if null and here else ()), *cells]) if redo else 0
        resumed = sum(run.done(cell) is not None for cell in cells)
        kept = f" after {len(null.cells)} of an A/A test" if null and null.cells else ""
        kept += f", {resumed} of them already done" if resumed else ""
        kept += f", {again} of those that failed are run again" if redo else ""
        console.print(f"run {run.path}: {len(cells)} cells{kept}", markup=False, highlight=False, soft_wrap=True)
        if here:
            work(run, cells, console, null, Deaths() if redo else None)
        else:
            run_parts(run, parts, launcher, console, judge=judge_null, redo=redo)
    finally:
        run.release()
    return run.path


def work(
    run: RunFolder,
    cells: list[PlannedCell],
    console: Console,
    null: NullPlan | None = None,
    deaths: Deaths | None = None,
) -> None:
    """Prepare and run what of a plan has not ended, into a run that is held.

    Args:
        deaths: what is known of cells that ran out of memory; by default what the runs beside this one tell.

    Raises:
        UserError, PrerequisiteError: nothing could be started.
        CannotTell, SystemFailure: as `run_session`.
    """
    first = null.cells if null else []
    every = [*first, *cells]
    manifest = run.manifest
    with Display(len(every), console) as display:
        manifest |= {
            "rlaxes": rlaxes_version(),
            "machine": describe(),
            "load": {"before": load(), "after": None},
            "profile": cells[0].config["profile"]["name"],
            "configs": manifest.get("configs", {}) | configurations(every),
            "adapters": manifest.get("adapters", {}) | adapter_facts(every),
            "finished": None,
        }
        run.save()
        prepared = prepare(cells, run.path, display.say)
        manifest |= {
            "bundle": prepared.bundle_facts or manifest.get("bundle", {}),
            "locks": manifest.get("locks", {}) | prepared.locks,
        }
        _keep_machine(manifest, prepared)
        _keep_prompts(run, prepared)
        runner = Runner(run, prepared, display, deaths or Deaths.read(run.path.parent, manifest["machine"]["id"]))
        if null and null.cells:
            _run_null(run, runner, null)
        runner.run_all(cells)
    manifest["load"]["after"] = load()
    manifest["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
    run.save()


def _run_null(run: RunFolder, runner: Runner, null: NullPlan) -> None:
    """Run the A/A test and have it judged, unless it was found fine already. One that an earlier session found wanting
    is measured anew: the machine may be quiet by now."""
    manifest, facts = run.manifest, null_facts(null.cells)
    ended = all(run.done(cell) for cell in null.cells)
    before = manifest.get("null_test") or {}
    if ended and _was_fine(before) and all(before[key] == facts[key] for key in ("cells", "max_noise")):
        return
    manifest["null_test"] = facts
    runner.run_all(null.cells, "null_cells")
    judged = null.judge(run.path, manifest)
    if judged["failed"] and ended:
        for cell in null.cells:
            run.set_aside(cell.cell_id, "null_cells")
        runner.run_all(null.cells, "null_cells")
        judged = null.judge(run.path, manifest)
    manifest["null_test"] = facts | judged
    run.save()
    if judged["stopped"]:
        raise _stopped(run, judged)


def _stopped(run: RunFolder, judged: dict[str, Any]) -> CannotTell | SystemFailure:
    kept = f"{run.path} keeps what was measured, and the same command tries again"
    noise = judged["noise"]
    for row in run.manifest["null_cells"]:
        if row["status"] != "ok" and (noise is None or noise <= judged["max_noise"]):
            said = f"{row['cell_id']} {row['status']}: {row['reason']}"
            return SystemFailure(f"stopped, the A/A test could not be run: {said}. {kept}; null_test.pairs=0 has none")
    return CannotTell(f"stopped before the comparison: {judged['stopped']}. {kept}; null_test.max_noise=... takes more")


def _was_fine(test: dict[str, Any]) -> bool:
    return test.get("noise") is not None and not test["failed"]


def _keep_machine(manifest: dict[str, Any], prepared: Prepared) -> None:
    """What each machine of a run is. Its cells share one limit: a later reading would move the headroom of those that
    are measured."""
    machine, known = manifest["machine"], manifest.get("machines") or {}
    before = known.get(machine["id"], {} if known else manifest)
    manifest["roofline"] = before.get("roofline") or prepared.roofline
    manifest["machines"] = known | {machine["id"]: {"machine": machine, "roofline": manifest["roofline"]}}


def _keep_prompts(run: RunFolder, prepared: Prepared) -> None:
    """The run keeps the prompts, so that its ledgers can be checked when the bundle is gone."""
    if prepared.bundle is not None:
        shutil.copyfile(prepared.bundle / "prompts.jsonl", run.path / "prompts.jsonl")
