"""What each trained row says of the ratio of trainer to behaviour policy: token arrays reduced to one element a row.

`log w_t = log pi_theta - log mu_v`, in float64, on policy tokens where both are known [12.4.2]. A sample that several
steps consume has a row for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.contract import CellLedger
from harness.measure.columns import (
    MISSING,
    Array,
    by_run,
    codes,
    flat_numbers,
    floats,
    integers,
    lengths,
    log_sums_twice,
    pieces,
)
from harness.measure.rollouts import Rollouts, sample_ids

_COLUMNS = (
    "step",
    "policy_version",
    "published_version",
    "trainer_logprobs",
    "old_logprobs",
    "advantage",
    "policy_tokens",
    "t_step_start",
)


@dataclass(frozen=True)
class Trained:
    """One element a row of the `trained` table.

    Attributes:
        rollout: the row of the `rollouts` table; -1 where no rollout has that sample id.
        lag, published_lag: in optimizer steps and in publications, at the start of the step; -1 where unknown.
        age: seconds from the end of generation to the start of training in the step; NaN where unknown.
        policy_tokens: tokens trained on; `defined`: those of them whose log w is known.
        no_behavior: policy tokens with no finite behaviour log-prob (support violations).
        scored: whether the row has trainer log-probs at all.
        log_sum, log_square: `lse(log w)` and `lse(2 log w)` over the row's tokens; `log_w`: their sum.
        absolute, largest: sum and maximum of |log w|; `k3`: sum of `w - 1 - log w`.
        outside: tokens with w outside the clip range; `binding`: tokens whose gradient the clip removed.
        clipped: whether the step had a clip range; `has_old`: whether the row has the old policy's log-probs.
    """

    rollout: Array
    step: Array
    batch: Array
    lag: Array
    published_lag: Array
    age: Array
    policy_tokens: Array
    defined: Array
    no_behavior: Array
    scored: Array
    log_sum: Array
    log_square: Array
    log_w: Array
    absolute: Array
    largest: Array
    k3: Array
    outside: Array
    binding: Array
    clipped: Array
    has_old: Array

    def __len__(self) -> int:
        return len(self.step)


def read_trained(
    ledger: CellLedger, rollouts: Rollouts, clips: dict[int, tuple[float, float]], begins: dict[int, int]
) -> Trained:
    """Read the `trained` table in pieces beside the behaviour log-probs of `rollouts`.

    Args:
        clips: by step, the logarithms of the two ends of its clip range; a step that is not in it has none.
        begins: by step, when its first forward pass began (ns); where it is not in it, the row's own start counts.
    """
    index = pc.index_in(sample_ids(ledger, "trained"), value_set=sample_ids(ledger, "rollouts"))
    rollout = integers(index, np.int32)
    batch, _ = codes(ledger.path("trained"), "batch_id")
    parts = list(_pieces(ledger, rollouts, rollout, clips, begins))
    names = parts[0].keys() if parts else _empty_names()
    columns = {name: np.concatenate([part[name] for part in parts]) if parts else np.empty(0) for name in names}
    return Trained(rollout=rollout, batch=batch, **columns)


def _empty_names() -> list[str]:
    return [name for name in Trained.__dataclass_fields__ if name not in {"rollout", "batch"}]


def _pieces(
    ledger: CellLedger,
    rollouts: Rollouts,
    rollout: Array,
    clips: dict[int, tuple[float, float]],
    begins: dict[int, int],
) -> Iterator[dict[str, Array]]:
    starts, done = rollouts.starts, 0
    for piece in pieces(ledger.path("trained"), _COLUMNS, "trainer_logprobs"):
        rows = rollout[done : done + len(piece)]
        done += len(piece)
        light = _light(piece, rollouts, rows, begins)
        yield light | _reduce(piece, rollouts, rows, starts, _bounds(light["step"], clips))


def _light(piece: pa.RecordBatch, rollouts: Rollouts, rows: Array, begins: dict[int, int]) -> dict[str, Array]:
    known = rows >= 0
    policy_tokens = integers(piece["policy_tokens"], np.int32)
    step, end = integers(piece["step"], np.int32), np.where(known, rollouts.t_end[rows], MISSING)
    unique, which = np.unique(step, return_inverse=True)
    begin = np.array([begins.get(int(number), MISSING) for number in unique], dtype=np.int64)[which]
    start = np.where(begin >= 0, begin, integers(piece["t_step_start"]))
    behavior = np.where(known, rollouts.known_logprobs[rows], 0)
    return {
        "step": step,
        "lag": _lag(integers(piece["policy_version"], np.int32), np.where(known, rollouts.version[rows], MISSING)),
        "published_lag": _lag(
            integers(piece["published_version"], np.int32), np.where(known, rollouts.published[rows], MISSING)
        ),
        "age": np.where(end >= 0, (start - end) / 1e9, np.nan).astype(np.float32),
        "policy_tokens": policy_tokens,
        "no_behavior": np.maximum(policy_tokens - behavior, 0).astype(np.int32),
        "scored": np.asarray(pc.is_valid(piece["trainer_logprobs"])),
        "has_old": np.asarray(pc.is_valid(piece["old_logprobs"])),
    }


def _lag(now: Array, then: Array) -> Array:
    """`u - v`; unknown (-1) where one of them is, or where it would be negative, which the audit reports."""
    lag: Array = np.where((now >= 0) & (then >= 0), np.maximum(now - then, MISSING), MISSING).astype(np.int32)
    return lag


def _bounds(steps: Array, clips: dict[int, tuple[float, float]]) -> tuple[Array, Array]:
    none = (np.nan, np.nan)
    unique, inverse = np.unique(steps, return_inverse=True)
    table = np.array([clips.get(int(step), none) for step in unique]).reshape(-1, 2)
    return table[inverse, 0], table[inverse, 1]


def _reduce(
    piece: pa.RecordBatch, rollouts: Rollouts, rows: Array, starts: Array, bounds: tuple[Array, Array]
) -> dict[str, Array]:
    counts = lengths(piece["trainer_logprobs"])
    trainer = flat_numbers(piece["trainer_logprobs"], np.float32)
    same_length = (rows >= 0) & (counts == rollouts.response_tokens[rows])
    if not same_length.all():  # a law of the audit; such a row has no ratio
        trainer = trainer[np.repeat(same_length, counts)]
        counts = np.where(same_length, counts, 0)
    log_w = trainer.astype(np.float64) - rollouts.behavior.gather(starts[rows], counts)
    known = np.isfinite(log_w)
    out = _weights(log_w, known, counts)
    low, high = bounds
    with np.errstate(invalid="ignore"):  # comparisons with NaN are False, which is meant
        outside = (log_w > np.repeat(high, counts)) | (log_w < np.repeat(low, counts))
    out["outside"] = by_run(np.add, (outside & known).astype(np.int32), counts, 0)
    out["binding"] = _binding(piece, trainer, counts, bounds)
    out["clipped"] = np.isfinite(low)
    return out


def _weights(log_w: Array, known: Array, counts: Array) -> dict[str, Array]:
    """Sums over the tokens of each row; tokens that are not known weigh nothing."""
    everywhere = bool(known.all())
    safe = log_w if everywhere else np.where(known, log_w, -np.inf)
    zeroed = log_w if everywhere else np.where(known, log_w, 0.0)
    log_sum, log_square = log_sums_twice(safe, counts)
    size = np.abs(zeroed)
    with np.errstate(over="ignore"):  # a weight past what a float holds is infinite, and so is its excess
        k3 = by_run(np.add, np.expm1(zeroed) - zeroed, counts, 0.0).astype(np.float32)
    return {
        "defined": by_run(np.add, known.astype(np.int32), counts, 0),
        "log_sum": log_sum,
        "log_square": log_square,
        "log_w": by_run(np.add, zeroed, counts, 0.0),
        "absolute": by_run(np.add, size, counts, 0.0).astype(np.float32),
        "largest": by_run(np.maximum, size, counts, 0.0).astype(np.float32),
        "k3": k3,
    }


def _binding(piece: pa.RecordBatch, trainer: Array, counts: Array, bounds: tuple[Array, Array]) -> Array:
    """Tokens whose gradient `min(r A, clip(r) A)` is zero: r above the range with A > 0, or below it with A < 0.

    r is the loss's own ratio, to the old policy that the step really used; where the row has none, r is 1 by
    construction and no gradient is removed.
    """
    column: Any = piece["old_logprobs"]
    old_counts = np.where(counts > 0, lengths(column), 0)
    has_old = (old_counts == counts) & (counts > 0)
    if not has_old.any():
        return np.zeros(len(counts), np.int32)
    old: Array = np.full(len(trainer), np.nan, np.float32)
    keep: Array = np.repeat(has_old, lengths(column))
    old[np.repeat(has_old, counts)] = flat_numbers(column, np.float32)[keep]
    log_r = trainer.astype(np.float64) - old
    advantage: Array = np.repeat(floats(piece["advantage"]), counts)
    low: Array = np.repeat(bounds[0], counts)
    high: Array = np.repeat(bounds[1], counts)
    with np.errstate(invalid="ignore"):
        removed = ((log_r > high) & (advantage > 0)) | ((log_r < low) & (advantage < 0))
    return by_run(np.add, removed.astype(np.int32), counts, 0)
