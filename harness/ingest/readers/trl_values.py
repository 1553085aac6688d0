"""What the entries of TRL's logs have in common, whether they come from a trainer state or from a console."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.ingest.reading import Block, Kind, Warn

GRPO_KEYS = ("reward_std", "frac_reward_zero_std", "completion_length", "completions/", "rewards/", "objective/")
"""What a log of GRPO, RLOO or PPO has and one of supervised training has not; a key, or how keys begin."""
SUMMARY_KEY, EVAL = "train_runtime", "eval_"
MOST_WARNINGS = 100


class Once:
    """Passes on one warning for each topic, so that a file with the same trouble in each entry says it once.

    Says nothing after `MOST_WARNINGS` topics: what a hostile file can make it remember is bounded.
    """

    def __init__(self, warn: Warn) -> None:
        self._warn, self._told = warn, set[str]()

    def __call__(self, line: int, topic: str, words: str) -> None:
        """Warn of a topic, if it is a new one."""
        if topic not in self._told and len(self._told) < MOST_WARNINGS:
            self._told.add(topic)
            self._warn(line, words)


def block_of(entry: Mapping[str, Any], line: int, once: Once, step: int | None = None, scope: str = "") -> Block:
    """One entry of `log_history`, or one dict of the console, as a block.

    Args:
        step: of the place where it stands; a `step` in the entry itself goes before it.
    """
    written = entry.get("step")
    if isinstance(written, int | float) and written == written // 1:
        step = int(written)
    values = dict(_numbers(entry, line, once))
    return Block(step, line, _kind(entry), values, scope)


def tells_of_rewards(keys: Mapping[str, Any]) -> bool:
    """Whether an entry is one of GRPO, RLOO or PPO."""
    return any(key.startswith(GRPO_KEYS) for key in keys)


def _numbers(entry: Mapping[str, Any], line: int, once: Once) -> Iterator[tuple[str, float]]:
    """Its numbers but the step; some versions of transformers write a number as text (`'loss': '0.1'`)."""
    for key, value in entry.items():
        if key == "step":
            continue
        try:
            yield key, float(value)
        except (TypeError, ValueError, OverflowError):
            once(line, key, f"{key[:80]}: {str(value)[:60]!r} is no number: left out")


def _kind(entry: Mapping[str, Any]) -> Kind:
    if SUMMARY_KEY in entry:
        return "summary"
    named = [key for key in entry if key not in ("step", "epoch")]
    return "validation" if named and all(key.startswith(EVAL) for key in named) else "training"
