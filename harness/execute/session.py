"""A whole run from the words on the command line to a finished run folder."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from harness.errors import UserError
from harness.execute.compose import UNDISTURBED, Choice, compose_choices, options_of
from harness.execute.launched import run_parts
from harness.execute.machine import describe, load
from harness.execute.parts import parts_of
from harness.execute.plan import PlannedCell
from harness.execute.prepare import Prepared, prepare
from harness.execute.progress import Display
from harness.execute.provenance import adapter_facts, configurations, rlaxes_version
from harness.execute.run_folder import RunFolder, open_run
from harness.execute.runner import Runner

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


def run_session(choices: Sequence[Choice], console: Console) -> Path:
    """Plan, prepare, run; resumes the unfinished run of the same plan. Returns the folder of the run.

    Raises:
        UserError, PrerequisiteError: nothing could be started.
    """
    launcher = choices[0].config["launcher"]
    parts = parts_of(choices, launcher["split"])
    cells = [cell for part in parts for cell in part.cells()]
    run = open_run(Path(choices[0].config["output"]), cells)
    try:
        resumed = sum(run.done(cell) is not None for cell in cells)
        kept = f", {resumed} of them already done" if resumed else ""
        console.print(f"run {run.path}: {len(cells)} cells{kept}", markup=False, highlight=False, soft_wrap=True)
        if launcher["plugin"] is None:
            work(run, cells, console)
        else:
            run_parts(run, parts, launcher, console)
    finally:
        run.release()
    return run.path


def work(run: RunFolder, cells: list[PlannedCell], console: Console) -> None:
    """Prepare and run what has not ended, on this machine."""
    with Display(len(cells), console) as display:
        run.manifest |= {
            "rlaxes": rlaxes_version(),
            "machine": describe(),
            "load": {"before": load(), "after": None},
            "profile": cells[0].config["profile"]["name"],
            "configs": configurations(cells),
            "adapters": adapter_facts(cells),
            "start_order": [cell.cell_id for cell in cells],
        }
        run.save()
        prepared = prepare(cells, run.path, display.say)
        run.manifest |= {"bundle": prepared.bundle_facts, "roofline": prepared.roofline, "locks": prepared.locks}
        machine = {"machine": run.manifest["machine"], "roofline": prepared.roofline}
        run.manifest["machines"] = run.manifest.get("machines", {}) | {run.manifest["machine"]["id"]: machine}
        _keep_prompts(run, prepared)
        Runner(run, prepared, display).run_all(cells)
    run.manifest["load"]["after"] = load()
    run.manifest["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
    run.save()


def _keep_prompts(run: RunFolder, prepared: Prepared) -> None:
    """The run keeps the prompts, so that its ledgers can be checked when the bundle is gone."""
    if prepared.bundle is not None:
        shutil.copyfile(prepared.bundle / "prompts.jsonl", run.path / "prompts.jsonl")
