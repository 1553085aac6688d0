"""Runs the cells of a plan, one after the other; whatever happens to one, the others go on."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from harness.contract import CellLedger, LedgerWriter, compact, read_cell
from harness.contract.seal import write_json
from harness.errors import HarnessBug, PrerequisiteError, UserError
from harness.execute.adapter import import_folder
from harness.execute.attempts import Attempt, Attempts
from harness.execute.cell import Cell
from harness.execute.drills import refusal
from harness.execute.foreign_load import NOT_COUNTED
from harness.execute.launch import Limits, child_environment, end_orphan, progress_of
from harness.execute.machine import load
from harness.execute.out_of_memory import Deaths
from harness.execute.plan import PlannedCell, cell_of
from harness.execute.prepare import Prepared
from harness.execute.progress import Display
from harness.execute.run_folder import DONE, RunFolder
from harness.execute.verdict import Verdict
from harness.probe.faults import ACTED

Say = Callable[[str], None]


class Runner:
    """Works through the cells of a run folder."""

    def __init__(self, run: RunFolder, prepared: Prepared, display: Display, deaths: Deaths) -> None:
        """`deaths`: cells that ran out of memory before; those of this run are added to them."""
        self._run, self._prepared, self._display, self._deaths = run, prepared, display, deaths
        self._number = 0

    def run_all(self, cells: Sequence[PlannedCell], table: str = "cells") -> None:
        """Run every cell that has not ended yet; the manifest on disk is whole after each.

        Args:
            table: where in the manifest their rows go.
        """
        for planned in cells:
            self._number += 1
            row = self._run.done(planned)
            if row is None:
                self._display.cell_started(self._number, planned.cell_id)
                self._run.begin(planned.cell_id)
                row = self._run_cell(planned)
                write_json(self._run.cell(planned.cell_id) / DONE, row)
                self._deaths.learn(planned.cell_id, row, planned.config)
            verdict = Verdict(row["status"], row["cause"], row["reason"])
            self._display.cell_ended(self._number, planned.cell_id, verdict, row["wall_s"])
            self._run.keep(row, table)

    def _run_cell(self, planned: PlannedCell) -> dict[str, Any]:
        folder = self._run.cell(planned.cell_id)
        end_orphan(folder)
        if aside := self._run.clear(planned.cell_id):
            self._run.manifest["torn"].append(aside)
        cell = cell_of(planned, self._run.path.name, folder, self._prepared.bundle)
        cell.write()
        row: dict[str, Any] = {
            "cell_id": planned.cell_id,
            "adapter": planned.label,
            "system": planned.system,
            "fault": cell.fault["name"],
            "twin": planned.twin,
            "layout": cell.layout["name"],
            "track": cell.track,
            "repeat": planned.repeat,
            "key": planned.key,
            "made_of": planned.made_of,
            "machine": self._run.manifest["machine"]["id"],
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "load_before": load(),
        }
        started = time.monotonic()
        try:
            measured = self._work(planned, cell)
        except (UserError, PrerequisiteError) as error:
            measured = Verdict("not_run", "infrastructure", str(error)).as_dict()
        except OSError as error:
            measured = Verdict("failed", "infrastructure", f"{error.strerror}: {error.filename}").as_dict()
        return {
            "wall_s": time.monotonic() - started,
            "fidelity": [],
            "attempts": [],
            "foreign_cores": None,
            "foreign_reason": "it did not run",
            **row,
            "load_after": load(),
            **measured,
        }

    def _work(self, planned: PlannedCell, cell: Cell) -> dict[str, Any]:
        driver = planned.adapter.driver
        if reason := refusal(planned.adapter, cell.fault, cell.adapter_options) or driver.skip(cell):
            return Verdict("not_run", None, reason).as_dict()
        if verdict := self._deaths.verdict(planned):
            return verdict.as_dict()
        return self._start(planned, cell)

    def _start(self, planned: PlannedCell, cell: Cell) -> dict[str, Any]:
        driver = planned.adapter.driver
        python = self._prepared.python(planned)
        launch = driver.render(cell)
        for name, content in launch.files.items():
            (cell.path / name).write_text(content, encoding="utf-8")
        if launch.argv[0] != "python":
            raise HarnessBug(f"adapter {planned.adapter.name} renders a command that does not begin with 'python'")
        source = planned.version.source if planned.version else None
        imports = import_folder(planned.adapter, cell.path / "imports", source)
        env = child_environment(imports, cell.path / "cell.json", launch.env, cell.profile["threads"])
        limits = Limits(cell.profile["time_limit_s"], int(cell.profile["memory_limit_gb"] * 2**30))
        with LedgerWriter(cell.path / "streams", "harness", cell.run_id) as writer:
            argv = [str(python), *launch.argv[1:]]
            attempts = Attempts(cell, argv, env, limits, lambda: self._display.cell_progress(progress_of(cell.path)))
            ended = attempts.run(writer)
            native = driver.native(cell.path) if ended[-1].outcome.returncode == 0 else []
            writer.write("native", [{"t": None, "step": s, "key": k, "value": v} for s, k, v in native])
        compact(cell.path / "streams", self._run.ledger, cell.cell_id)
        return self._row(planned, cell, ended, limits)

    def _row(self, planned: PlannedCell, cell: Cell, ended: list[Attempt], limits: Limits) -> dict[str, Any]:
        """The cell's row is that of its last attempt; its seconds are those of all."""
        ledger = read_cell(self._run.ledger, cell.cell_id)
        *before, last = ended
        verdicts = [attempt.judged(cell, limits, finished=False) for attempt in before]
        verdicts.append(last.judged(cell, limits, finished=_finished(cell, ledger)))
        settings = ledger.manifest.get("settings", {})
        return {
            **verdicts[-1].as_dict(),
            "wall_s": sum(attempt.outcome.wall_seconds for attempt in ended),
            "peak_bytes": max(attempt.outcome.peak_bytes for attempt in ended) or None,
            **foreign_of(ended),
            "fidelity": [asdict(row) for row in planned.adapter.driver.fidelity(cell, settings)] if settings else [],
            "result": _result(cell),
            "faults_acted": len(list((cell.path / ACTED).glob("*"))),
            "attempts": [attempt.as_dict(verdict) for attempt, verdict in zip(ended, verdicts, strict=True)],
        }


def foreign_of(ended: Sequence[Attempt]) -> dict[str, Any]:
    """Cores that others used while the cell ran, over all its attempts."""
    parts = [(attempt.outcome.foreign_cores, attempt.outcome.wall_seconds) for attempt in ended]
    known = [(cores, seconds) for cores, seconds in parts if cores is not None]
    if len(known) < len(parts):
        return {"foreign_cores": None, "foreign_reason": NOT_COUNTED}
    cores = sum(cores * seconds for cores, seconds in known) / sum(seconds for _, seconds in known)
    return {"foreign_cores": cores, "foreign_reason": None}


def _finished(cell: Cell, ledger: CellLedger) -> bool:
    return ledger.finished if cell.observer else (cell.path / "result.json").exists()


def _result(cell: Cell) -> dict[str, Any] | None:
    """What a bare run says of itself (`result.json`); an observed one may write it too."""
    path = cell.path / "result.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
