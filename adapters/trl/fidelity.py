"""How near TRL comes to each task setting, from what was asked and what TRL's objects held."""

from collections.abc import Mapping
from typing import Any

from adapters.trl.settings import uses_vllm
from harness.execute.adapter import Fidelity
from harness.execute.fidelity import FrameworkFidelity, Held, Judge, Judged


def fidelity_rows(cell: Mapping[str, Any], held: Held) -> list[Fidelity]:
    """One row a task setting, in the task's order, and one for the track."""
    return [*_TRL.rows(cell["task"], held), _track_row(cell, held)]


def _loss(task: Held, held: Held) -> Judged:
    kind = held["trl.loss_type"]
    if kind == "dapo" and task["minibatches"] > 1:
        note = "loss_type dapo divides by the batch's mean tokens per optimizer step, not by this step's own"
        return "approximated", note
    return "exact", f"loss_type {kind}"


def _sampling(knob: str, off: float) -> Judge:
    def judge(task: Held, _: Held) -> Judged:
        used = task[knob] != off
        return "exact", f"{knob} shapes what is sampled; TRL's trainer log-probs do not model it" if used else ""

    return judge


def _weight_decay(task: Held, _: Held) -> Judged:
    if task["weight_decay"]:
        return "approximated", "transformers.Trainer does not decay biases and norms"
    return "exact", ""


def _precision(task: Held, held: Held) -> Judged:
    if task["precision"] == "float32":
        return "exact", f"weights {held['trl.weight_dtype']}, no autocast"
    return "approximated", f"autocast; weights, gradients and optimizer states stay {held['trl.weight_dtype']}"


def _kl(task: Held, _: Held) -> Judged:
    if not task["kl_beta"]:
        return "exact", "no reference model is loaded"
    return "exact", "k3 estimate against the starting checkpoint, not weighted by the ratio"


def _optimizer(_: Held, held: Held) -> Judged:
    return "exact", f"{held['trl.optimizer']} ({held['trl.optim']})"


def _constant(_: Held, __: Held) -> Judged:
    return "exact", "a constant of TRL's source; the first advantages of the run were checked against it"


def _mask_truncated(task: Held, _: Held) -> Judged:
    if not task["mask_truncated"]:
        return "exact", ""
    if task["loss"] == "sequence_mean":
        return "approximated", "a masked completion still counts in the number that TRL divides the batch's loss by"
    return "exact", "a masked completion counts in its group's mean and std, not in the loss"


_SPECIAL: dict[str, Judge] = {
    "mask_truncated": _mask_truncated,
    "loss": _loss,
    "top_p": _sampling("top_p", 1.0),
    "top_k": _sampling("top_k", 0),
    "min_p": _sampling("min_p", 0.0),
    "weight_decay": _weight_decay,
    "precision": _precision,
    "kl_beta": _kl,
    "learning_rate": _optimizer,
    "std_ddof": _constant,
    "advantage_eps": _constant,
}


_DIFFERENT: dict[str, Judged] = {
    "advantage_eps": ("approximated", "TRL's source holds 1e-4"),
    "std_ddof": ("unsupported", "TRL's source divides by n - 1"),
}
_TRL = FrameworkFidelity("TRL", _DIFFERENT, _SPECIAL)


def _track_row(cell: Mapping[str, Any], held: Held) -> Fidelity:
    """Completions of exactly `max_tokens` tokens are had by taking EOS out of the distribution until then."""
    if cell["track"] == "free":
        return Fidelity("track", "free", "free", "exact", "")
    knob = "min_tokens" if uses_vllm(cell) else "min_new_tokens"
    note = f"{knob}: EOS is suppressed and the rest renormalised; TRL's trainer log-probs do not model that"
    in_force = "fixed_length" if held.get("trl.min_new_tokens") == cell["task"]["max_tokens"] else None
    return Fidelity("track", cell["track"], in_force, "approximated" if in_force else "unsupported", note)
