"""`rlaxes export`: a run into the formats that were asked for, each in a folder of its own."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.contract import read_cell
from harness.errors import UserError
from harness.execute.uv_process import Say
from harness.export.content import Content, content_of
from harness.export.corrected import corrected
from harness.export.latex import render_latex
from harness.export.tables import write_tables
from harness.export.tensorboard import write_tensorboard
from harness.export.trackers import TRACKERS, export_environment, write_tracker
from harness.report.corrections import corrections_of
from harness.report.model import ReportModel
from harness.report.perfetto import write_perfetto
from harness.report.scrub import scrub

FILES = ("csv", "latex", "perfetto", "tensorboard")
FORMATS = tuple(sorted((*FILES, *TRACKERS)))


def export_run(run: Path, formats: Sequence[str], output: Path, say: Say, cell: str | None = None) -> dict[str, Path]:
    """Write a run, or a published table of one, for each of `formats`; the folder of each.

    Args:
        output: a folder; below it each format has its own, and several runs stand beside each other in it.
        cell: the one cell that `perfetto` writes; None for all.

    Raises:
        UserError: an unknown format or cell, a run that was exported there before, or one that cannot give a format.
        PrerequisiteError: the environment of the tools cannot be made, or a tool failed.
    """
    if unknown := sorted(set(formats) - set(FORMATS)):
        raise UserError(f"no format {', '.join(unknown)}; there are {', '.join(FORMATS)}")
    if cell and "perfetto" not in formats:
        raise UserError("--cell chooses the timeline that perfetto writes: add --to perfetto")
    model = read_report(run)
    content = content_of(model)
    folders = {name: output / name for name in sorted(set(formats))}
    writers: dict[str, Callable[[Path], None]] = {
        "csv": lambda folder: write_tables(model, content, folder),
        "latex": lambda folder: _write_texts(render_latex(model), folder),
        "perfetto": lambda folder: _write_timelines(run, model, folder, cell),
        "tensorboard": lambda folder: write_tensorboard(content, folder),
    }
    for name, folder in folders.items():
        if name in writers:
            _write_new(folder / model.run_id, writers[name])
    _write_trackers(content, {name: folder for name, folder in folders.items() if name in TRACKERS}, say)
    return folders


def read_report(run: Path) -> ReportModel:
    """What the report of a run says, without names of the machine, and with the corrections of a published one; made
    now where there is none that is current.

    Raises:
        UserError: the folder holds no run, or a report of another rlaxes; a correction cannot be read.
    """
    path = run / "report.json"
    if not path.exists() or (
        (run / "ledger").is_dir() and path.stat().st_mtime < (run / "manifest.json").stat().st_mtime
    ):
        from harness.report.build import build_report  # draws: 100 MB of plotting libraries that no export needs

        build_report(run)
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return corrected(ReportModel.from_dict(scrub(content)), corrections_of(run))


def _write_new(target: Path, write: Callable[[Path], None]) -> None:
    """Write a folder that appears whole or not at all."""
    if target.exists():
        raise UserError(f"{target} is there already: choose another --output, or remove it")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    write(partial)
    partial.rename(target)


def _write_texts(texts: dict[str, str], folder: Path) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _write_timelines(run: Path, model: ReportModel, folder: Path, cell: str | None) -> None:
    if not (run / "ledger").is_dir():
        raise UserError(f"{run} has no ledgers, and a timeline is made from them: export the run itself")
    known = [one["cell_id"] for one in model.cells if one["status"] == "ok"]
    if not known:
        raise UserError(f"no cell of {model.run_id} ended well: there is no timeline")
    if cell and cell not in known:
        raise UserError(f"no cell {cell} that ended well; there are {', '.join(known)}")
    for one in [cell] if cell else known:
        write_perfetto(read_cell(run / "ledger", one), folder / f"{one}.perfetto.json")


def _write_trackers(content: Content, folders: dict[str, Path], say: Say) -> None:
    if folders:
        python = export_environment(say).python
        for name, folder in folders.items():
            say(f"writing {len(content.runs)} runs with {name}")
            write_tracker(name, content, folder, python)
