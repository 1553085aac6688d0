"""Writes simulated cells as a run folder, which `rlaxes report`, `check` and `trace` read like any other."""

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.contract import compact
from harness.contract.seal import write_json
from harness.errors import RlaxesError
from harness.execute.machine import describe
from harness.execute.provenance import rlaxes_version
from harness.simulate.ledger import Ledger
from harness.simulate.rates import batch_tokens
from harness.simulate.ratios import SAYS
from harness.simulate.rows import plain
from harness.simulate.settings import Settings
from harness.simulate.simulate import Simulated, simulate

ADAPTER, TRACK = "simulator", "simulated"
SIMULATED = "nothing ran: times, lengths and rewards are drawn from the settings; log ratios are {ratios}"


def simulate_into(output: Path, cells: Sequence[Settings]) -> tuple[Path, list[Simulated]]:
    """Simulate cells one after the other into a new run folder under `output`; the folder, and their figures.

    Raises:
        UserError: the settings of a cell are refused; nothing is written.
    """
    created = datetime.now(UTC)
    folder = output / f"{created:%Y-%m-%d-%H%M%S}-{secrets.token_hex(2)}"
    folder.mkdir(parents=True)
    try:
        done = [_cell(folder, cell) for cell in cells]
    except RlaxesError:
        shutil.rmtree(folder)
        raise
    manifest = _manifest(folder.name, created, list(zip(cells, done, strict=True)))
    write_json(folder / "manifest.json", manifest)
    return folder, done


def _cell(folder: Path, settings: Settings) -> Simulated:
    streams = folder / "cells" / _cell_id(settings) / "streams"
    ledger = Ledger(streams, settings, f"{folder.name}/{_cell_id(settings)}")
    done = simulate(settings, ledger)
    ledger.close(done.seconds)
    compact(streams, folder / "ledger", _cell_id(settings))
    return done


def _cell_id(settings: Settings) -> str:
    return f"{ADAPTER}.{settings.name}.{TRACK}.r0"


def _manifest(run_id: str, created: datetime, done: Sequence[tuple[Settings, Simulated]]) -> dict[str, Any]:
    ended = datetime.now(UTC)
    first = done[0][0]
    says = SIMULATED.format(ratios=SAYS.format(**vars(first.synthetic)))
    adapter = {"name": ADAPTER, "title": "Event simulator", "version": rlaxes_version()["version"], "native": []}
    adapter |= {"sources": ["harness/simulate"], "axes": {}, "capabilities": {"simulated": says}}
    return {
        "schema": 1,
        "run_id": run_id,
        "created": created.isoformat(timespec="seconds"),
        "finished": ended.isoformat(timespec="seconds"),
        "plan_hash": None,
        "profile": "simulated",
        "simulated": says,
        "machine": describe(),
        "rlaxes": rlaxes_version(),
        "adapters": {ADAPTER: adapter},
        "configs": {_cell_id(cell).rsplit(".r", 1)[0]: _config(cell, ended_at.steps) for cell, ended_at in done},
        "cells": [_row(cell, created) for cell, _ in done],
        "torn": [],
    }


def _config(settings: Settings, steps: int) -> Mapping[str, Any]:
    """What reports read of a cell's configuration, and all of its own settings beside it; `steps` were simulated."""
    group, per_batch = settings.group_size, settings.batch.groups
    if per_batch is None:
        per_batch = round(batch_tokens(settings) / group / settings.response_tokens.mean)
    task = {"name": "simulated work", "steps": steps, "warmup_steps": settings.warmup_steps}
    most = settings.response_tokens.at_most
    task |= {"prompts_per_batch": per_batch, "group_size": group, "max_tokens": int(most) if most else most}
    task |= {"minibatches": settings.batch.minibatches, "inner_epochs": settings.batch.inner_epochs}
    task |= {"micro_batches": 1, "learning_rate": 1.0, "lr_schedule": "constant"}
    resolved = {
        "task": task,
        "model": {"name": "none"},
        "adapter": {"name": ADAPTER, "checkpoint": {"mtbf_s": settings.trainer.mtbf_s}},
        "layout": {
            "name": settings.name,
            "placement": settings.placement,
            "synchrony": settings.synchrony,
            "lag_bound": settings.lag_bound,
        },
        "profile": {"name": "simulated", "device": "simulated", "devices": settings.rollout.replicas + 1},
        "track": {"name": TRACK},
        "price": {"amount": None},
        "fault": {"name": "none"},
        "repeats": 1,
        "seed": settings.seed,
        "observer": True,
        "simulated": plain(settings),
    }
    return {"hash": None, "resolved": json.loads(json.dumps(resolved))}


def _row(settings: Settings, created: datetime) -> dict[str, Any]:
    identity = _cell_id(settings)
    return {
        "cell_id": identity,
        "adapter": ADAPTER,
        "system": ADAPTER,
        "layout": settings.name,
        "track": TRACK,
        "repeat": 0,
        "fault": "none",
        "twin": identity,
        "status": "ok",
        "cause": None,
        "reason": None,
        "started": created.isoformat(timespec="seconds"),
        "wall_s": None,
        "peak_bytes": None,
        "fidelity": [],
        "attempts": [],
        "result": None,
        "load_before": None,
        "load_after": None,
    }
