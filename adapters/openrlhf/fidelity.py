"""How near OpenRLHF comes to each task setting, from what was asked and what its trainer held."""

from collections.abc import Mapping
from typing import Any

from harness.execute.adapter import Fidelity
from harness.execute.fidelity import FrameworkFidelity, Held, Judge, Judged

BY_PLUG_IN = "no flag: our agent executor sets it on vLLM's sampling parameters"


def fidelity_rows(cell: Mapping[str, Any], held: Held) -> list[Fidelity]:
    """One row a task setting, in the task's order, and one for the track."""
    return [*_OPENRLHF.rows(cell["task"], held), _track_row(cell, held)]


def _steps(_: Held, __: Held) -> Judged:
    return "exact", "no number of steps can be set: the run ends with its data"


def _minibatches(task: Held, _: Held) -> Judged:
    if task["minibatches"] == 1:
        return "exact", ""
    return "exact", "which completions share a minibatch is drawn at random, anew in each epoch (DataLoader shuffle)"


def _sampling(knob: str, off: float, set_by: str) -> Judge:
    def judge(task: Held, _: Held) -> Judged:
        used = task[knob] != off
        return "exact", f"{set_by}; the trainer's log-probs do not model it" if used else ""

    return judge


def _clip(_: Held, held: Held) -> Judged:
    dual, kind = held["openrlhf.dual_clip"], held["openrlhf.policy_loss_type"]
    if dual is not None or kind != "ppo":
        return "approximated", f"policy loss {kind}, dual clip {dual}"
    return "exact", "no dual clip"


def _loss(_: Held, held: Held) -> Judged:
    if held["openrlhf.correction"] != "off":
        level = held["openrlhf.correction"]
        note = f"is_correction_level {level} multiplies it by the ratio of trainer to engine, and drops or clips ratios"
        return "approximated", note
    return "exact", "normalised by the optimizer step's own count over all micro-batches and trainers"


def _weight_decay(task: Held, _: Held) -> Judged:
    return ("approximated", "biases and norms are not decayed") if task["weight_decay"] else ("exact", "")


def _kl(task: Held, _: Held) -> Judged:
    if not task["kl_beta"]:
        return "exact", "no reference model is loaded"
    note = "k3 estimate against the starting checkpoint, each token's held within 10"
    if task["loss"] == "sequence_mean":
        return "approximated", f"{note}; a mean over tokens even where the policy loss is one over sequences"
    return "exact", note


def _precision(task: Held, held: Held) -> Judged:
    if task["precision"] == "float32":
        return "exact", "by patches of ours, in trainer and engine: OpenRLHF knows bf16 and fp16 only"
    if held["openrlhf.zero_stage"]:
        return "exact", "model and gradients; DeepSpeed keeps a float32 copy of the weights and the optimizer's state"
    return "exact", "DeepSpeed's bf16 optimizer, with a float32 copy of the weights"


def _optimizer(_: Held, held: Held) -> Judged:
    return "exact", f"AdamW by DeepSpeed, ZeRO stage {held['openrlhf.zero_stage']}"


def _constant(_: Held, __: Held) -> Judged:
    return "exact", "a constant of OpenRLHF's source"


_SPECIAL: dict[str, Judge] = {
    "steps": _steps,
    "minibatches": _minibatches,
    "top_p": _sampling("top_p", 1.0, "shapes what is sampled"),
    "top_k": _sampling("top_k", 0, BY_PLUG_IN),
    "min_p": _sampling("min_p", 0.0, BY_PLUG_IN),
    "clip_low": _clip,
    "clip_high": _clip,
    "loss": _loss,
    "weight_decay": _weight_decay,
    "kl_beta": _kl,
    "precision": _precision,
    "learning_rate": _optimizer,
    "std_ddof": _constant,
    "advantage_eps": _constant,
}
_DIFFERENT: dict[str, Judged] = {
    "advantage_eps": ("approximated", "OpenRLHF's source holds 1e-9"),
    "std_ddof": ("unsupported", "OpenRLHF's source divides by n - 1"),
    "mask_truncated": ("unsupported", "OpenRLHF can scale a truncated completion's reward, not leave it out"),
    "precision": ("approximated", "OpenRLHF's own, in trainer and engine: on a GPU there is no other"),
}


_OPENRLHF = FrameworkFidelity("OpenRLHF", _DIFFERENT, _SPECIAL)


def _track_row(cell: Mapping[str, Any], held: Held) -> Fidelity:
    """Completions of exactly `max_tokens` tokens: end-of-sequence is sampled like any other token and does not stop."""
    in_force = "fixed_length" if held["openrlhf.ignore_eos"] else "free"
    if in_force == "free":
        return Fidelity("track", cell["track"], in_force, "exact" if cell["track"] == "free" else "unsupported", "")
    return Fidelity("track", cell["track"], in_force, "exact", f"ignore_eos; {BY_PLUG_IN}")
