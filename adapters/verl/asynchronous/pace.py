"""How far rollout runs ahead of training in each mode of verl, from the layout's lag bound; imports no framework.

verl bounds neither lag nor versions directly. The V1 modes bound the age of a prompt in global steps, counted from its
dispatch (trainer/ppo/v1/replay_buffer.py), `fully_async` the number of prompts that are generated and not yet trained
on (fully_async_rollouter.py set_max_required_samples), `one_step_off` is one batch ahead by its shape. A global step
has `updates_per_sync` optimizer steps, after which the weights are handed over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODES: dict[str, tuple[str, ...]] = {
    "colocated_sync": ("sync",),
    "colocated_async": ("colocate_async",),
    "disaggregated_async": ("separate_async", "fully_async", "one_step_off"),
}
"""verl's modes in each layout; the first is the one that `adapter.mode: null` means."""

V1_ASYNC = ("colocate_async", "separate_async")
SEVERAL_TO_A_SYNC = ("separate_async", "fully_async")
"""The modes that can take several batches between two hand-overs of weights."""


NOT_RESUMED = ("fully_async", "one_step_off")
"""The modes of verl's older trainers: a checkpoint holds no prompt that was generated and not trained on, and their
step labels shift at a restart."""


@dataclass(frozen=True)
class Pace:
    """What a cell's mode is set to.

    Attributes:
        updates_per_batch: optimizer steps over one batch that the trainer asks for.
        prompts: of such a batch.
        batches_per_sync: of them between two hand-overs (verl's `parameter_sync_step`, `trigger_parameter_sync_step`).
        age: global steps that a prompt may be old, itself included (V1's `max_off_policy_threshold`), else None.
        warmup: batches that are dispatched ahead of the first step (V1), else 0.
        staleness: share of the prompts between two hand-overs that may be left over (fully_async), else 0.
        lag_bound: optimizer steps that a batch can be behind at its first one; None where verl bounds none.
    """

    mode: str
    updates_per_batch: int
    prompts: int
    batches_per_sync: int
    age: int | None
    warmup: float
    staleness: float
    lag_bound: int | None

    @property
    def updates_per_sync(self) -> int:
        """Optimizer steps between two hand-overs of weights."""
        return self.batches_per_sync * self.updates_per_batch

    @property
    def prompts_per_sync(self) -> int:
        """Prompts between two hand-overs: V1's `data.train_batch_size`."""
        return self.batches_per_sync * self.prompts


def mode_of(cell: Mapping[str, Any]) -> str:
    """The mode that a cell runs; `misfit` says whether it can."""
    asked: str | None = cell["adapter_options"].get("mode")
    return asked or MODES.get(cell["layout"]["name"], ("none",))[0]


def pace_of(cell: Mapping[str, Any]) -> Pace:
    """What the layout's lag bound means in the cell's mode."""
    mode, task, options = mode_of(cell), cell["task"], cell["adapter_options"]
    minibatches, epochs = int(task["minibatches"]), int(task["inner_epochs"])
    per_sync = int(options["parameter_sync_step"]) if mode in SEVERAL_TO_A_SYNC else 1
    # separate_async trains each sample of its buffer in one minibatch (trainer_separate_async.py __init__).
    cut = minibatches if mode == "separate_async" else 1
    updates, prompts = minibatches * epochs // cut, int(task["prompts_per_batch"]) // cut
    left = int(cell["layout"]["lag_bound"]) - (per_sync - 1) * updates
    ahead = max(left // (per_sync * updates), 0)
    common: dict[str, Any] = {
        "mode": mode,
        "updates_per_batch": updates,
        "prompts": prompts,
        "batches_per_sync": per_sync,
    }
    if mode in V1_ASYNC:
        asked = options["warmup_batches"]
        most = (ahead + 1) * per_sync * updates - updates
        return Pace(**common, age=ahead + 1, warmup=ahead if asked is None else asked, staleness=0, lag_bound=most)
    if mode == "fully_async":
        asked = options["staleness_threshold"]
        staleness = float(ahead if asked is None else asked)
        # What is left over at a hand-over is trained on in the next version only as long as none is overtaken.
        strict = (per_sync - 1) * updates if staleness == 0 else None
        return Pace(**common, age=None, warmup=0, staleness=staleness, lag_bound=strict)
    return Pace(**common, age=None, warmup=0, staleness=0, lag_bound=updates if mode == "one_step_off" else 0)


def misfit(cell: Mapping[str, Any]) -> str | None:
    """Why a cell's mode cannot run in its layout or with its settings, in one line; None where it can."""
    mode, layout, task = mode_of(cell), cell["layout"], cell["task"]
    fitting = MODES.get(layout["name"])
    if fitting is None:
        return f"verl has no layout {layout['name']}; it has {', '.join(MODES)}"
    if mode not in fitting:
        return f"verl's mode {mode} does not fit the layout {layout['name']}, which has {', '.join(fitting)}"
    pace = pace_of(cell)
    if mode in NOT_RESUMED and cell["adapter_options"]["checkpoint"]["every"]:
        lost = "loses what is under way at a restart, and this adapter does not resume it"
        return f"verl's {mode} {lost}: adapter.checkpoint.every has to be 0"
    if task["steps"] % pace.updates_per_sync:
        unit = f"{pace.updates_per_sync} optimizer steps between two hand-overs of weights"
        return f"task.steps={task['steps']} is no multiple of the {unit}, and verl ends on none but a whole one"
    least = pace.updates_per_batch if mode == "one_step_off" else (pace.batches_per_sync - 1) * pace.updates_per_batch
    if layout["lag_bound"] < least:
        behind = f"up to {least} optimizer steps behind as set"
        return f"verl's {mode} is {behind}, which layout.lag_bound={layout['lag_bound']} forbids"
    if mode == "separate_async" and task["prompts_per_batch"] % task["minibatches"]:
        return f"{task['prompts_per_batch']} prompts cannot be cut into {task['minibatches']} minibatches"
    return None
