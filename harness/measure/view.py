"""A cell as the measures see it: its tables read once, when first asked for, and the window after the warm-up."""

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from harness.contract import CellLedger
from harness.measure.columns import Array, codes, floats, integers
from harness.measure.fates import Fates, read_fates
from harness.measure.groups import Groups, read_groups
from harness.measure.measure import UnmeasuredError
from harness.measure.queue import QueueLog, read_queue
from harness.measure.ratios import Trained, read_trained
from harness.measure.rollouts import Rollouts, read_rollouts
from harness.measure.spans import GENERATING, OUTSIDE, Spans, read_spans
from harness.measure.window import Window, find_window, whole_batches

_UPDATE_INTEGERS = (
    "step",
    "policy_version_before",
    "policy_version_after",
    "t_start",
    "t_end",
    "applied",
    "records",
    "groups",
)
_UPDATE_FLOATS = ("loss", "grad_norm", "learning_rate", "clip_low", "clip_high")


@dataclass(frozen=True)
class MeasureContext:
    """What a ledger does not hold.

    Attributes:
        task: the task's settings (`group_size`, `micro_batches`, ...).
        warmup_steps: how many optimizer steps to drop at least; see `harness.measure.window.whole_batches`.
        price: `{amount, currency, per: "device_hour", date, source}` with `amount` None where there is no price.
        roofline: `{bandwidth_bytes_per_s, matrix_flops_per_s, ...}` of this machine, or None.
        native_definitions: from `adapter.yaml`, `{key, definition, measure, differs_because}` and optionally
            `reduce` (how the figure's steps become one number, see `harness.measure.self_report`; `mean` by default)
            and `scale` (what to multiply it by to have it in our unit).
        between_failures: mean seconds between failures as declared (`checkpoint.mtbf_s`), or None.
    """

    task: dict[str, Any]
    warmup_steps: int
    price: dict[str, Any] | None = None
    roofline: dict[str, Any] | None = None
    native_definitions: list[dict[str, Any]] = field(default_factory=list)
    between_failures: float | None = None


class Tables:
    """A cell's tables, independent of any window."""

    def __init__(self, ledger: CellLedger) -> None:
        self.ledger = ledger

    @cached_property
    def spans(self) -> Spans:
        """All spans."""
        return read_spans(self.ledger)

    @cached_property
    def rollouts(self) -> Rollouts:
        """All rollouts."""
        return read_rollouts(self.ledger)

    @cached_property
    def trained(self) -> Trained:
        """All trained rows, their tokens reduced."""
        update = self.updates
        ends = zip(update["step"], update["clip_low"], update["clip_high"], strict=True)
        clips = {
            int(step): (math.log1p(-low) if low < 1 else -math.inf, math.log1p(high))
            for step, low, high in ends
            if math.isfinite(low) and math.isfinite(high)
        }
        passes = self.spans.of("forward_backward")
        order = np.argsort(passes.t_start, kind="stable")[::-1]  # the earliest of a step is written last
        begins = dict(zip(passes.step[order].tolist(), passes.t_start[order].tolist(), strict=True))
        return read_trained(self.ledger, self.rollouts, clips, begins)

    @cached_property
    def groups(self) -> Groups:
        """All groups."""
        return read_groups(self.rollouts)

    @cached_property
    def updates(self) -> dict[str, Array]:
        """All optimizer steps in their order."""
        table = self.ledger.table("updates").sort_by("step")
        whole = {name: integers(table[name]) for name in _UPDATE_INTEGERS}
        return whole | {name: floats(table[name]) for name in _UPDATE_FLOATS}

    @cached_property
    def details(self) -> tuple[Array, list[dict[str, Any]]]:
        """What spans say of themselves: a number for each span, and what that number stands for."""
        numbers, texts = codes(self.ledger.path("spans"), "detail")
        return numbers, [*(json.loads(text) for text in texts), {}]

    @cached_property
    def fates(self) -> Fates:
        """What became of each completion."""
        return read_fates(self.ledger)

    @cached_property
    def queue(self) -> QueueLog:
        """The events of the queue between collectors and trainer."""
        return read_queue(self.ledger)


class CellView:
    """A cell between the end of the warm-up and the end of its run."""

    def __init__(self, tables: Tables, context: MeasureContext, warmup_steps: int | None = None) -> None:
        self.tables, self.context = tables, context
        self._warmup = context.warmup_steps if warmup_steps is None else warmup_steps

    def whole_run(self) -> "CellView":
        """The same cell with no warm-up dropped."""
        return CellView(self.tables, self.context, 0)

    @property
    def notes(self) -> dict[str, Any]:
        """The manifest's notes."""
        return self.tables.ledger.manifest

    @cached_property
    def window(self) -> Window:
        """What is measured.

        Raises:
            UnmeasuredError: there is no optimizer step after the warm-up.
        """
        tables = self.tables
        dropped = 0
        if self._warmup:
            dropped = whole_batches(self._warmup, len(tables.updates["step"]), tables.trained, tables.rollouts)
        return find_window(self.notes.get("window"), tables.updates, tables.spans, dropped, self._kept_spans(dropped))

    def _kept_spans(self, dropped: int) -> Array:
        """Spans of later steps, or of batches that no dropped step consumed."""
        spans, trained, rollouts = self.tables.spans, self.tables.trained, self.tables.rollouts
        early = trained.rollout[(trained.step < dropped) & (trained.rollout >= 0)]
        consumed = {rollouts.traces[code] for code in np.unique(rollouts.trace[early])}
        generated = set(rollouts.traces)
        names = spans.names["trace_id"]
        fresh = np.array([name in generated and name not in consumed for name in names], dtype=bool)
        kept: Array = (spans.step >= dropped) | (fresh[spans.trace_id] if len(spans) else np.zeros(0, dtype=bool))
        return kept

    @cached_property
    def spans(self) -> Spans:
        """The spans that begin in the window, but for those that are no part of the loop."""
        spans, window = self.tables.spans, self.window
        inside = (spans.t_start >= window.t_start) & (spans.t_start < window.t_end)
        return spans.where(inside & ~spans.is_in(*OUTSIDE))

    @cached_property
    def updates(self) -> dict[str, Array]:
        """The optimizer steps of the window."""
        return {name: column[self.window.dropped :] for name, column in self.tables.updates.items()}

    @property
    def steps(self) -> int:
        """How many optimizer steps the window has."""
        return len(self.updates["step"])

    @cached_property
    def trained(self) -> Array:
        """Which trained rows belong to steps of the window."""
        first = self.tables.updates["step"][self.window.dropped]
        rows: Array = self.tables.trained.step >= first
        return rows

    @cached_property
    def rollouts(self) -> Array:
        """Which rollouts ended their generation in the window."""
        rollouts, window = self.tables.rollouts, self.window
        ended = np.where(rollouts.t_end >= 0, rollouts.t_end, self._trace_ends())
        rows: Array = (ended > window.t_start) & (ended <= window.t_end)
        return rows

    @cached_property
    def settled(self) -> Array:
        """Which completions met their fate in the window."""
        t, window = self.tables.fates.t, self.window
        rows: Array = (t > window.t_start) & (t <= window.t_end)
        return rows

    def _trace_ends(self) -> Array:
        """For each rollout, the end of the last generating span of its batch; -1 where there is none."""
        rollouts, spans = self.tables.rollouts, self.tables.spans.of(*GENERATING)
        last = np.full(len(spans.names["trace_id"]), -1)
        np.maximum.at(last, spans.trace_id, spans.t_end)
        ends = dict(zip(spans.names["trace_id"], last, strict=True))
        by_code = np.array([ends.get(name, -1) for name in rollouts.traces], dtype=np.int64)
        return by_code[rollouts.trace] if len(by_code) else np.empty(0, np.int64)

    @cached_property
    def group_codes(self) -> Array:
        """The groups that have completions in the window."""
        return np.unique(self.tables.rollouts.group[self.rollouts])

    @property
    def device_count(self) -> int:
        """Reserved devices; a CPU host counts as one."""
        return int(self.notes.get("device_count", 1))

    def absent(self, stage: str) -> str | None:
        """Why the system has no such stage, or None where it does not say that it has none."""
        reason = self.notes.get("absent_stages", {}).get(stage)
        if reason is not None:
            return str(reason)
        if stage == "generate" and len(self.spans.of("prefill", "decode")):
            return "prefill and decode are told apart"
        if stage == "observation":
            return "the loop writes its records itself, within its stages"
        return None

    def note(self, key: str) -> Any:
        """A note of the manifest.

        Raises:
            UnmeasuredError: the adapter wrote none.
        """
        if key not in self.notes:
            raise UnmeasuredError(f"the adapter wrote no note `{key}`")
        return self.notes[key]
