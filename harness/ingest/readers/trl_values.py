"""What the entries of TRL's logs have in common, whether they come from a trainer state or from a console."""

from collections.abc import Iterable

from harness.ingest.reading import Block, Kind

OF_REWARDS = ("reward_std", "frac_reward_zero_std", "completion_length", "completions/", "rewards/", "objective/")
"""What a log of GRPO, RLOO or PPO has and one of supervised training has not; a key, or how keys begin."""
SUMMARY, EVAL, ASYNCHRONOUS = "train_runtime", "eval_", "sample/staleness_mean"


def speaks_of_rewards(keys: Iterable[str]) -> bool:
    """Whether an entry is one of GRPO, RLOO or PPO."""
    return any(key.removeprefix(EVAL).startswith(OF_REWARDS) for key in keys)


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
    if ASYNCHRONOUS in values:
        words["mode"] = "async"
    return Block(step, line, _kind(values), values, scope, words)


def _kind(values: dict[str, float]) -> Kind:
    if SUMMARY in values:
        return "summary"
    named = values.keys() - {"epoch"}
    return "validation" if named and all(key.startswith(EVAL) for key in named) else "training"
