"""How near verl 0.9.1 comes to each task setting, from what was asked and what verl's configuration and objects held.

`held` has a task setting's value under its own name, and what decides how near it comes under `verl.*`: `strategy`,
`autocast` (the dtype of the training forward pass), `clip_ratio_c`, `bypass_mode`, `loss_agg_mode`, `shuffle`,
`optimizer`, `weight_dtype`, `ignore_eos`. Files named here are those of the verl 0.9.1 package.
"""

from collections.abc import Mapping
from typing import Any

from harness.execute.adapter import Fidelity
from harness.execute.fidelity import FrameworkFidelity, Held, Judge, Judged

NEVER = {"min_p": 0.0, "mask_truncated": False}
"""Task settings that verl has no name for, and what it does in their place."""
DUAL_CLIP_OFF = 1e3
"""From this `clip_ratio_c` on, dual clip removes no gradient: no ratio is as large (verl bounds log-ratios at 20)."""


def fidelity_rows(cell: Mapping[str, Any], held: Held) -> list[Fidelity]:
    """One row a task setting, in the task's order, and one for the track."""
    return [*_VERL.rows(cell["task"], NEVER | dict(held)), _track_row(cell["track"], held)]


def _loss(_: Held, held: Held) -> Judged:
    note = (
        f"loss_agg_mode {held['verl.loss_agg_mode']}, over the {{}} of each optimizer step, all micro-batches and ranks"
    )
    return "exact", note.format("completions" if held["verl.loss_agg_mode"].startswith("seq") else "tokens")


def _minibatches(task: Held, held: Held) -> Judged:
    if task["minibatches"] == 1:
        return "exact", ""
    if held["verl.shuffle"]:
        return "approximated", "actor.shuffle: verl draws them at random from the whole batch"
    order = "slices of the batch in the order in which completions arrived: a group may be split between two"
    return "approximated", f"{order} (replay_buffer.py _materialize_batch)"


def _clip_low(_: Held, held: Held) -> Judged:
    if held["verl.bypass_mode"]:
        return "exact", "of the ratio to the sampling engine's own log-probs (bypass_mode): no old policy is recomputed"
    return "exact", "of the ratio to log-probs that the trainer recomputes before the batch's first optimizer step"


def _clip_high(_: Held, held: Held) -> Judged:
    bound = held["verl.clip_ratio_c"]
    if bound < DUAL_CLIP_OFF:
        return "approximated", f"dual clip: a ratio over {bound:g} with a negative advantage has no gradient either"
    return "exact", f"dual clip, which verl has on at 3, is out of reach (clip_ratio_c {bound:g})"


def _sampling(knob: str, off: float) -> Judge:
    def judge(task: Held, _: Held) -> Judged:
        if task[knob] == off:
            return "exact", ""
        return "exact", f"{knob} shapes what is sampled; verl's trainer log-probs model the temperature alone"

    return judge


def _schedule(task: Held, _: Held) -> Judged:
    if task["lr_schedule"] == "constant" or task["minibatches"] * task["inner_epochs"] == 1:
        return "exact", ""
    return "approximated", "verl moves its schedule once a generated batch, not once an optimizer step"


def _weight_decay(task: Held, held: Held) -> Judged:
    if not task["weight_decay"]:
        return "exact", ""
    if held["verl.strategy"] == "megatron":
        return "approximated", "Megatron does not decay biases and norms"
    return "exact", "on all parameters, biases and norms included"


def _precision(task: Held, held: Held) -> Judged:
    if task["precision"] == "float32":
        return "exact", f"weights {held['verl.weight_dtype']}, no autocast"
    return "approximated", f"autocast; weights, gradients and optimizer states stay {held['verl.weight_dtype']}"


def _kl(task: Held, _: Held) -> Judged:
    if not task["kl_beta"]:
        return "exact", "no reference model is loaded"
    return "exact", "k3 estimate against the starting checkpoint, in the loss, held within 10 a token"


def _optimizer(_: Held, held: Held) -> Judged:
    return "exact", str(held["verl.optimizer"])


def _constant(_: Held, __: Held) -> Judged:
    return "exact", "a constant of verl's source (core_algos.py compute_grpo_outcome_advantage)"


_SPECIAL: dict[str, Judge] = {
    "loss": _loss,
    "minibatches": _minibatches,
    "clip_low": _clip_low,
    "clip_high": _clip_high,
    "top_p": _sampling("top_p", 1.0),
    "top_k": _sampling("top_k", 0),
    "min_p": _sampling("min_p", 0.0),
    "lr_schedule": _schedule,
    "weight_decay": _weight_decay,
    "precision": _precision,
    "kl_beta": _kl,
    "learning_rate": _optimizer,
    "std_ddof": _constant,
    "advantage_eps": _constant,
}


_DIFFERENT: dict[str, Judged] = {
    "advantage_eps": ("approximated", "verl's source holds 1e-6 (core_algos.py compute_grpo_outcome_advantage)"),
    "std_ddof": ("unsupported", "verl's source divides by n - 1 (torch.std)"),
    "min_p": ("unsupported", "verl's sampling parameters have no min_p (agent_loop.py generate_sequences)"),
    "mask_truncated": ("unsupported", "verl trains on truncated completions"),
    "precision": ("approximated", "the training forward pass runs under autocast, as verl does by default"),
}
_VERL = FrameworkFidelity("verl", _DIFFERENT, _SPECIAL)


def _track_row(asked: str, held: Held) -> Fidelity:
    """Completions of exactly `max_tokens` tokens are had by not stopping at the end-of-sequence token."""
    if asked == "free":
        return Fidelity("track", asked, "fixed_length" if held["verl.ignore_eos"] else "free", "exact", "")
    if not held["verl.ignore_eos"]:
        return Fidelity("track", asked, "free", "unsupported", "this engine of verl's stops at end-of-sequence")
    note = (
        "ignore_eos: end-of-sequence is sampled like any other token and does not stop, and what follows it counts as "
        "policy tokens too"
    )
    return Fidelity("track", asked, "fixed_length", "exact", note)
