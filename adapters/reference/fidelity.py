"""How each task setting stands in the reference loop, from what was asked and what its parts held."""

from collections.abc import Mapping
from typing import Any

from harness.execute.adapter import Fidelity

HARNESS_OWN = ("problems", "dataset", "generator")
"""Task keys that the bundle was built from; no framework sees them."""
FIXED_LENGTH = (
    "end-of-sequence is sampled like any other token and does not stop: each token is drawn from the policy's own "
    "distribution, and what follows an end-of-sequence token counts as policy tokens too"
)
_NOTES = {
    "top_p": ("top_p shapes what is sampled; the trainer's log-probs do not model it", 1.0),
    "top_k": ("top_k shapes what is sampled; the trainer's log-probs do not model it", 0),
    "min_p": ("min_p shapes what is sampled; the trainer's log-probs do not model it", 0.0),
    "kl_beta": ("k3 estimate against the starting checkpoint", 0.0),
    "weight_decay": ("on all parameters, biases and norms included", 0.0),
    "mask_truncated": ("a truncated completion counts in its group's mean and is then dropped", False),
}
"""Notes for settings that are in use, with the value that means that they are not."""


def fidelity_rows(cell: Mapping[str, Any], held: Mapping[str, Any]) -> list[Fidelity]:
    """One row a task setting, in the task's order, and one for the track."""
    rows = [_row(setting, asked, held) for setting, asked in cell["task"].items()]
    note = FIXED_LENGTH if cell["track"] == "fixed_length" else ""
    in_force = "free" if held["stops_at_eos"] else "fixed_length"
    return [*rows, Fidelity("track", cell["track"], in_force, "exact", note)]


def _row(setting: str, asked: Any, held: Mapping[str, Any]) -> Fidelity:
    if setting in HARNESS_OWN:
        return Fidelity(setting, asked, asked, "exact", "built into the bundle")
    if setting not in held:
        return Fidelity(setting, asked, None, "unsupported", "the loop has no such setting")
    note, unused = _NOTES.get(setting, ("", asked))
    return Fidelity(
        setting,
        asked,
        held[setting],
        "exact" if held[setting] == asked else "approximated",
        note if asked != unused else "",
    )
