"""What the entries of TRL's logs have in common, whether they come from a trainer state or from a console."""

from collections.abc import Iterable

from harness.ingest.reading import Block, Kind

OF_REWARDS = ("reward_std", "frac_reward_zero_std", "completion_length", "completions/", "rewards/", "objective/")
"""What a log of GRPO, RLOO or PPO has and one of supervised training has not: how keys begin."""
SUMMARY, EVAL = "train_runtime", "eval_"
ASYNCHRONOUS = ("sample/staleness_mean", "generation_tok_per_s")
"""What asynchronous GRPO logs alone: since it has names of its own, and before."""


def key_of_rewards(keys: Iterable[str]) -> str | None:
    """The first key that only GRPO, RLOO or PPO writes; None where an entry has none."""
    return next((key for key in keys if key.removeprefix(EVAL).startswith(OF_REWARDS)), None)


def entry_block(
    values: dict[str, float], line: int, step: int | None = None, scope: str = "", words: dict[str, str] | None = None
) -> Block:
    """An entry as a block.

    The one at the end of training has the seconds of the whole run and, beside them, means of what came after the last
    entry of a step: it is a `summary`, so that these are taken for neither.

    Args:
        step: of the place where it stands; a `step` among the values goes before it and is none of them.
    """
    written = values.pop("step", None)
    if written is not None and written.is_integer():
        step = int(written)
    words = dict(words or {})
    if any(key in values for key in ASYNCHRONOUS):
        words["mode"] = "async"
    return Block(step, line, _kind(values), values, scope, words)


def _kind(values: dict[str, float]) -> Kind:
    if SUMMARY in values:
        return "summary"
    named = values.keys() - {"epoch"}
    return "validation" if named and all(key.startswith(EVAL) for key in named) else "training"
