"""From a synchronous cell's ledger to the settings of a simulation, and what such a ledger cannot tell."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.contract import CellLedger, read_cell, split_name
from harness.errors import UserError
from harness.simulate.calibrate_spans import SIDE_OF, Batches, Floats, pooled, read_batches
from harness.simulate.reading import nearest

TELLING = 2.0
"""Standard errors that a coefficient of the decoding law has to be above zero to be believed."""


@dataclass(frozen=True)
class Decoding:
    """Seconds of a decoding step: `step_s + sequences * sequence_s`; `known` where both follow from the ledger, else
    every step is taken to cost the same. `spread`: standard deviation of the rest, over the mean."""

    step_s: float
    sequence_s: float
    known: bool
    spread: float


@dataclass(frozen=True)
class Calibration:
    """A measured synchronous cell.

    Attributes:
        cell: without its repeat where several were read.
        groups, group_size: of a batch.
        updates: optimizer steps over one batch.
        prompt_tokens: mean of a prompt.
        replicas, ranks: processes that generated and that trained.
        rollout_threads, trainer_threads: that each of them computes with, as configured.
        cores: of the machine; None where its manifest does not say.
        limits: of the queue, as the cell was configured.
    """

    run: str
    cell: str
    placement: str
    device: str
    groups: int
    group_size: int
    updates: int
    prompt_tokens: float
    replicas: int
    ranks: int
    rollout_threads: int
    trainer_threads: int
    cores: int | None
    limits: Mapping[str, Any]
    batches: Batches

    @property
    def samples(self) -> int:
        """Completions of a batch."""
        return self.groups * self.group_size


def calibrate(folder: Path, cell: str | None) -> Calibration:
    """Read what a run measured.

    Args:
        cell: a cell id, or one without its repeat for all of its repeats; None for the run's one synchronous cell.

    Raises:
        UserError: names what is wrong with the cell, or what its ledger lacks.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if manifest.get("ingested"):
        raise UserError(
            f"{folder.name} was ingested: it holds what its framework wrote (table native), and no begin and end of a "
            f"stage; a log is calibrated on by harness.simulate.logged"
        )
    name, cells = _chosen(manifest, cell, folder)
    config = _config(manifest, cells[0])
    layout, task = config["layout"], config["task"]
    if layout["synchrony"] != "synchronous":
        raise UserError(
            f"{name} is asynchronous: its stages ran side by side, and what each takes alone cannot be told. "
            f"Calibrate on a synchronous cell"
        )
    try:
        ledgers = [read_cell(folder / "ledger", each) for each in cells]
    except ValueError as error:
        raise UserError(str(error)) from error
    threads = config["profile"].get("threads") or 1
    pools = (config["adapter"].get("pools") or {}) if layout["placement"] == "disaggregated" else {}
    updates = int(task["minibatches"]) * int(task["inner_epochs"])
    warmup = -(-int(task["warmup_steps"]) // updates)
    return Calibration(
        run=manifest["run_id"],
        cell=name,
        placement=layout["placement"],
        device=str(config["profile"]["device"]),
        groups=int(task["prompts_per_batch"]),
        group_size=int(task["group_size"]),
        updates=updates,
        prompt_tokens=_prompt_tokens(ledgers[0]),
        replicas=_workers(ledgers[0], "prefill", "decode", "generate"),
        ranks=_workers(ledgers[0], "forward_backward"),
        rollout_threads=int(pools.get("rollout_threads") or threads),
        trainer_threads=int(pools.get("trainer_threads") or threads),
        cores=manifest["machine"].get("cores"),
        limits=config["adapter"].get("queue") or {},
        batches=pooled([read_batches(ledger, warmup) for ledger in ledgers]),
    )


def decoding_law(batches: Batches, samples: int) -> Decoding:
    """Least squares of a batch's decoding seconds on its steps and on the tokens that they gave, where the batches
    differ enough to tell the two apart and both come out above zero; else seconds over steps alone. No law where no
    completion has a second token, and of one completion a step is a token."""
    seconds = batches.stages["decode"] + batches.stages["generate"]
    steps, tokens = batches.steps, batches.tokens - samples
    mean, to_typical = float(seconds.mean()), batches.typical / float(batches.period.mean())
    if not mean or not steps.any():
        return Decoding(0.0, 0.0, known=False, spread=0.0)
    design = np.stack([steps, tokens], axis=1)
    freedom = len(seconds) - 2
    if samples > 1 and freedom > 0 and np.linalg.matrix_rank(design) == design.shape[1]:
        found = np.linalg.lstsq(design, seconds, rcond=None)[0]
        rest = seconds - design @ found
        errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * float(rest @ rest) / freedom)
        if (found > TELLING * errors).all():
            step, sequence = (float(value) * to_typical for value in found)
            return Decoding(step, sequence, known=True, spread=float(rest.std()) / mean)
    alone = float(seconds.sum() / steps.sum())
    return Decoding(alone * to_typical, 0.0, known=False, spread=float((seconds - alone * steps).std()) / mean)


def not_held(found: Calibration) -> list[str]:
    """What the calibration says nothing about, each with the measurement that is missing."""
    said = [
        "partial rollouts and weights that change within a completion: nothing was interrupted; measure a cell with "
        "adapter.versions=token",
        "records that are dropped, masked or learned from less because of their lag: every lag was 0; measure a cell "
        "with lag and its adapter.staleness",
        "how lag changes lengths and rewards: lengths are drawn as they were at lag 0",
    ]
    shared = found.device == "cpu"
    beside = "beyond the cores that they share evenly" if shared and found.cores else "of any kind"
    said.append(
        f"contention {beside}, where generation and training run at once: each stage ran alone here; measure one cell "
        f"of disaggregated_async"
    )
    if shared:
        said.append(
            f"another number of threads: these stages were measured with {found.rollout_threads} (rollout) and "
            f"{found.trainer_threads} (training), and colocated layouts are predicted for as many (profile.threads); "
            f"measure a cell of colocated_sync"
        )
    if found.placement == "colocated":
        said.append("calls and transfers between processes: there were none; measure a cell of disaggregated_sync")
    else:
        said.append(
            "what a shared module saves of a publication: its transfer was not measured apart, and is kept whole where "
            "colocated; measure a cell of colocated_sync"
        )
    return said


def _chosen(manifest: Mapping[str, Any], cell: str | None, folder: Path) -> tuple[str, list[str]]:
    """The cell's name and the ids of the repeats that are read."""
    able = [row["cell_id"] for row in manifest["cells"] if row["status"] == "ok"]
    labels = {name: [other for other in able if _label(other) == name] for name in map(_label, able)}
    if cell is not None:
        found = labels.get(cell, [cell] if cell in able else [])
        if not found:
            known = nearest(cell, [*labels, *able])
            raise UserError(f"cell={cell}: {folder.name} has no such cell that is ok{known}")
        return cell, found
    synchronous = [name for name in labels if _synchrony(manifest, name) == "synchronous"]
    if len(synchronous) != 1:
        several = f"give cell= one of {', '.join(synchronous)}" if synchronous else "run a synchronous layout"
        raise UserError(f"{folder.name} has {len(synchronous)} synchronous cells that are ok: {several}")
    return synchronous[0], labels[synchronous[0]]


def _label(cell: str) -> str:
    """A cell's id without its repeat."""
    return cell.rsplit(".r", 1)[0]


def _synchrony(manifest: Mapping[str, Any], label: str) -> str | None:
    found = manifest.get("configs", {}).get(label, {}).get("resolved", {})
    synchrony: str | None = (found.get("layout") or {}).get("synchrony")
    return synchrony


def _config(manifest: Mapping[str, Any], cell: str) -> dict[str, Any]:
    found = manifest.get("configs", {}).get(_label(cell), {}).get("resolved", {})
    asked = {"layout", "task", "profile", "adapter"}
    if lacking := sorted(asked - set(found)):
        raise UserError(f"{cell}: its manifest has no configuration of {', '.join(lacking)}")
    config: dict[str, Any] = found
    return config


def _prompt_tokens(ledger: CellLedger) -> float:
    prompts = ledger.table("rollouts", ["prompt_tokens"])["prompt_tokens"].to_pylist()
    return float(np.mean([len(prompt) for prompt in prompts]))


def _workers(ledger: CellLedger, *stages: str) -> int:
    table = ledger.table("spans", ["stage", "process"]).to_pylist()
    return len({split_name(row["process"])[0].split(".")[0] for row in table if row["stage"] in stages})


def shares(batches: Batches) -> dict[str, float]:
    """Seconds of a typical batch by stage, and what no stage covers before each side, as `gap before train` within a
    process and `gap to train` between two; what is never there is left out. They add up to `Batches.typical`."""
    named: dict[str, Floats] = {name: batches.stages[name] for name in SIDE_OF}
    named |= {f"gap before {side}": values for side, values in batches.within.items()}
    named |= {f"gap to {side}": values for side, values in batches.between.items()}
    return {name: batches.part(values) for name, values in named.items() if values.any()}
