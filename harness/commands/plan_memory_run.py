"""`rlaxes plan memory run=RUN`: the budget of what a run did, beside the memory that it was seen to use."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.commands.plan_measured import Compared, MeasuredCell, measured_cell
from harness.commands.plan_memory import DEFAULTS, answer_of, shape_of, tiny_config
from harness.commands.plan_words import Answer, ask, read_words, size
from harness.errors import UserError
from harness.measure.figures.memory import PHASES, bytes_per_weight, predicted_state
from harness.measure.measure import UnmeasuredError
from harness.measure.view import CellView
from harness.theory.architecture import Architecture
from harness.theory.budget import Ask, Line, lines_of, pools, total
from harness.theory.hf_config import architecture_of
from harness.theory.memory import PROFILES

SHARED = ("engine_weights", "transfer_buffer")
"""What there is none of where the engine generates with the trainer's own weights."""


def plan_memory_run(given: Sequence[str]) -> Answer:
    """The budget for the model, the batch and the lengths of a run; each of its settings may be given instead.

    Raises:
        UserError: names the word that is wrong, or what the run lacks.
    """
    found = read_words(given, ("run", "cell", *DEFAULTS))
    cell = measured_cell(str(found.pop("run")), found.pop("cell", None))
    view = cell.views[0]
    try:
        profile, width, counted = (
            predicted_state(view)[0],
            bytes_per_weight(view),
            int(view.note("model")["parameters"]),
        )
    except UnmeasuredError as error:
        raise UserError(f"{cell.name} of {cell.run}: {error}") from error
    shape, layout = _shape(cell), str(cell.config["layout"]["name"])
    asked = ask(Ask, {**_asked(cell, width), **found}, DEFAULTS)
    lines = lines_of(shape, PROFILES[profile], asked)
    if shared := view.absent("weight_sync"):
        lines |= {name: replace(lines[name], bytes=0.0, formula=f"none: {shared}") for name in SHARED}
    answer = answer_of(shape, layout, profile, lines, asked)
    answer.more |= {"run": cell.run, "cell": cell.name, "repeats": len(cell.views)}
    if counted != shape.parameters:
        answer.warnings.append(f"the run counted {counted:,} parameters: its model is not this one")
    _compare(answer, cell, lines, asked)
    return answer


def _shape(cell: MeasuredCell) -> Architecture:
    model = cell.config["model"]
    if model["name"] == "tiny":
        return architecture_of(tiny_config(model["layers"], model["hidden"]))
    return shape_of(str(model["path"] if model["name"] == "hf" else model["name"]))


def _asked(cell: MeasuredCell, width: float) -> dict[str, Any]:
    """The settings of the budget, as far as the run's own say them; every number of bytes is that of its weights."""
    task, adapter = cell.config["task"], cell.config["adapter"]
    pool: Mapping[str, Any] = adapter.get("pools") or {} if _disaggregated(cell) else {}
    batch = task["prompts_per_batch"] * task["group_size"]
    sequences = math.ceil(batch / pool.get("replicas", 1))
    retained = max(_retained(view) for view in cell.views)
    return {
        "ranks": pool.get("trainer_ranks", 1),
        "lora_rank": (adapter.get("lora") or {}).get("rank", 0),
        "sequences": sequences,
        "tokens": math.ceil(retained / batch),
        **dict.fromkeys(("kv_bytes", "engine_bytes", "compute_bytes"), width),
        "micro_sequences": max(batch // (task["minibatches"] * task["micro_batches"]), 1),
        "micro_tokens": max(_longest(view) for view in cell.views),
        "recompute": "full" if task["gradient_checkpointing"] else "none",
    }


def _retained(view: CellView) -> int:
    """Prompt and response tokens of the generated batch that has the most."""
    rollouts = view.tables.rollouts
    return int(np.bincount(rollouts.trace, weights=rollouts.prompt_tokens + rollouts.response_tokens).max())


def _longest(view: CellView) -> int:
    rollouts = view.tables.rollouts
    return int((rollouts.prompt_tokens + rollouts.response_tokens).max())


def _disaggregated(cell: MeasuredCell) -> bool:
    return bool(cell.config["layout"]["placement"] == "disaggregated")


def _compare(answer: Answer, cell: MeasuredCell, lines: dict[str, Line], asked: Ask) -> None:
    """Peak against peak, and phase against phase where both are of one device or host."""
    apart = _disaggregated(cell)
    sums = {phase: total(lines, names) for phase, names in pools(asked, colocated=not apart).items()}
    if cell.config["profile"]["device"] == "cpu":
        figure, whole = "memory_peak_bytes", sum(sums.values()) if apart else max(sums.values())
        said = "all pools, on one host" if apart else "max B(t)"
        answer.warnings.append(
            "the rest of a host holds Python, torch and the libraries of each process: "
            f"{_shown(cell, 'memory_peak_bytes[startup]')} at its start"
        )
    else:
        figure, whole, said = "device_memory_peak_bytes[allocated]", max(sums.values()), "the fullest device"
    Compared("peak", whole, cell.middle(figure), said, cell.why(figure)).add_to(answer, size)
    for phase in [] if apart or figure != "memory_peak_bytes" else [p for p in PHASES if p in sums]:
        name = f"{figure}[{phase}]"
        Compared(phase, sums[phase], cell.middle(name), f"B({phase})", cell.why(name)).add_to(answer, size)


def _shown(cell: MeasuredCell, figure: str) -> str:
    found = cell.middle(figure)
    return "not sampled" if found is None else size(found)
