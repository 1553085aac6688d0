"""Where the time of each batch of a synchronous run went: its stages one after another, and what lies in none of them.

A walk over the spans by their beginnings gives every nanosecond of a batch to one stage or to the gap before one, so
that the parts of a batch add up to the time between the end of the batch before and its own end.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from harness.contract import CellLedger, split_name
from harness.errors import UserError

Floats: TypeAlias = npt.NDArray[np.float64]
COLLECT = "collect"
"""What `batch_assembly` is called outside the process that trains: a batch is put together where it is collected."""
SIDES: dict[str, tuple[str, ...]] = {
    "rollout": ("prompt_prep", "prefill", "decode", "generate"),
    "verdict": ("verifier", COLLECT),
    "train": ("batch_assembly", "logprob_recompute", "forward_backward", "optimizer_step"),
    "publish": ("weight_sync",),
    "keep": ("checkpoint",),
}
SIDE_OF = {stage: side for side, stages in SIDES.items() for stage in stages}
MOST_OVERLAP = 0.02
"""Share of the time in which stages of two sides may run side by side, before they are no sequence."""


@dataclass(frozen=True)
class Batches:
    """Seconds of each batch, all arrays [batches]: by stage; and by side what no stage covers before its spans,
    `within` one process (its own code between two stages) or `between` two (calls, transport, waiting to be scheduled).

    Attributes:
        steps: decoding steps: tokens of the longest completion, without its first, which is the prefill's.
        tokens: tokens of all completions.
        lengths: the tokens of each completion, of each batch.
        repeat: which repeat of the cell each batch is of, from 0.
        counted: the tokens that a rate counts: `tokens`, but where a length stands for something else; NaN: not known.
    """

    stages: dict[str, Floats]
    within: dict[str, Floats]
    between: dict[str, Floats]
    steps: Floats
    tokens: Floats
    lengths: tuple[Floats, ...]
    repeat: npt.NDArray[np.int64]
    counted: Floats

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def period(self) -> Floats:
        """The sum of all parts: from the end of the batch before to the end of this one."""
        parts = [*self.stages.values(), *self.within.values(), *self.between.values()]
        whole: Floats = np.sum(parts, axis=0)
        return whole

    @property
    def typical(self) -> float:
        """The median of `period` in each repeat, averaged over them, as reports show a period."""
        medians = [np.median(self.period[self.repeat == number]) for number in np.unique(self.repeat)]
        return float(np.mean(medians))

    def part(self, *values: Floats) -> float:
        """Seconds of a typical batch that a part takes: its share of all time, of a typical period. Medians of parts
        would not add up to one."""
        return float(np.sum(values)) / float(np.sum(self.period)) * self.typical

    def drawn(self, rng: np.random.Generator) -> Self:
        """As many batches, drawn with replacement: of repeats that are drawn first, where there are several."""
        numbers = np.unique(self.repeat)
        rows, repeats = [], []
        for place, number in enumerate(rng.choice(numbers, len(numbers))):
            own = np.flatnonzero(self.repeat == number)
            rows.append(rng.choice(own, len(own)))
            repeats.append(np.full(len(own), place))
        chosen = np.concatenate(rows)
        parts = [
            {name: values[chosen] for name, values in part.items()} for part in (self.stages, self.within, self.between)
        ]
        lengths = tuple(self.lengths[row] for row in chosen)
        stages, within, between = parts
        drawn = self.steps[chosen], self.tokens[chosen], lengths, np.concatenate(repeats), self.counted[chosen]
        return type(self)(stages, within, between, *drawn)


def pooled(repeats: Sequence[Batches]) -> Batches:
    """The batches of several repeats of a cell."""
    names: Sequence[str] = ("stages", "within", "between")
    stages, within, between = (
        {key: np.concatenate([getattr(each, name)[key] for each in repeats]) for key in getattr(repeats[0], name)}
        for name in names
    )
    steps, tokens, counted = (
        np.concatenate([getattr(each, name) for each in repeats]) for name in ("steps", "tokens", "counted")
    )
    lengths = tuple(found for each in repeats for found in each.lengths)
    repeat: npt.NDArray[np.int64] = np.repeat(np.arange(len(repeats)), [len(each) for each in repeats])
    return Batches(stages, within, between, steps, tokens, lengths, repeat, counted)


def read_batches(ledger: CellLedger, dropped: int) -> Batches:
    """The batches of a cell after the first `dropped` of them.

    Raises:
        UserError: the ledger has no stages or no lengths, too few batches, or stages that ran side by side.
    """
    names = ["trace_id", "stage", "process", "t_start", "t_end"]
    spans = sorted(ledger.table("spans", names).to_pylist(), key=lambda span: (span["t_start"], span["t_end"]))
    _name_sides(spans)
    walked = _walk([span for span in spans if span["stage"] in SIDE_OF], ledger.cell_id)[dropped:]
    if len(walked) < 2:
        raise UserError(f"{ledger.cell_id}: {len(walked)} whole batches after the warm-up: too few to calibrate on")
    lengths = _lengths(ledger)
    of_batch = [np.concatenate([lengths[t] for t in batch.traces if t in lengths] or [[]]) for batch in walked]
    if not all(len(found) for found in of_batch):
        raise UserError(f"{ledger.cell_id}: completions of a batch have no lengths in its ledger")
    stages, within, between = (
        {name: np.array([getattr(batch, part)[name] / 1e9 for batch in walked]) for name in kinds}
        for part, kinds in (("stages", SIDE_OF), ("within", SIDES), ("between", SIDES))
    )
    steps, tokens = (np.array([reduce(found) for found in of_batch]) for reduce in (np.max, np.sum))
    alone: npt.NDArray[np.int64] = np.zeros(len(walked), dtype=np.int64)
    return Batches(stages, within, between, steps - 1.0, tokens, tuple(of_batch), alone, tokens)


class _Batch:
    """Nanoseconds of one batch."""

    def __init__(self) -> None:
        self.stages: dict[str, int] = defaultdict(int)
        self.within: dict[str, int] = defaultdict(int)
        self.between: dict[str, int] = defaultdict(int)
        self.traces: dict[str, None] = {}
        self.trained = False


def _name_sides(spans: Sequence[dict[str, Any]]) -> None:
    trainers = {span["process"] for span in spans if span["stage"] == "forward_backward"}
    for span in spans:
        if span["stage"] == "batch_assembly" and span["process"] not in trainers:
            span["stage"] = COLLECT


def _walk(spans: Sequence[Mapping[str, Any]], cell: str) -> list[_Batch]:
    """Whole batches in their order. A batch begins with the first rollout after an update."""
    if not any(span["stage"] == "forward_backward" for span in spans):
        raise UserError(f"{cell}: its ledger has no span of forward_backward: when it trained is missing")
    batches = [_Batch()]
    until, last, overlapped = spans[0]["t_start"], spans[0], 0
    for span in spans:
        side = SIDE_OF[span["stage"]]
        if side == "rollout" and batches[-1].trained:
            batches.append(_Batch())
        batch = batches[-1]
        if gap := max(span["t_start"] - until, 0):
            kind = batch.within if split_name(span["process"]) == split_name(last["process"]) else batch.between
            kind[side] += gap
        elif SIDE_OF[last["stage"]] != side:
            overlapped += min(until, span["t_end"]) - span["t_start"]
        batch.stages[span["stage"]] += max(span["t_end"] - max(span["t_start"], until), 0)
        if span["t_end"] >= until:
            until, last = span["t_end"], span
        if side == "rollout":
            batch.traces[span["trace_id"]] = None
        batch.trained |= span["stage"] == "forward_backward"
    whole = until - spans[0]["t_start"]
    if overlapped > MOST_OVERLAP * whole:
        raise UserError(
            f"{cell}: {overlapped / whole:.0%} of its time, stages of two kinds ran side by side, and what each takes "
            f"alone cannot be told. Calibrate on a synchronous cell in which nothing overlaps"
        )
    return batches if batches[-1].trained else batches[:-1]


def _lengths(ledger: CellLedger) -> dict[str, Floats]:
    """By trace id the lengths of its completions."""
    table = ledger.table("rollouts", ["trace_id", "response_tokens"])
    found: dict[str, list[int]] = defaultdict(list)
    sizes = pc.list_value_length(table["response_tokens"]).to_pylist()
    for trace, size in zip(table["trace_id"].to_pylist(), sizes, strict=True):
        found[trace].append(size)
    return {trace: np.array(sizes, dtype=np.float64) for trace, sizes in found.items()}
