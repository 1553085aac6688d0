"""The spans of a cell as columns, and what can be asked of any set of them."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from harness.contract import CellLedger
from harness.measure.columns import Array, codes, integers

GENERATING = ("prefill", "decode", "generate")
PARTS: dict[str, tuple[str, ...]] = {
    "rollout": ("prompt_prep", "prefill", "decode", "generate"),
    "reward": ("verifier",),
    "logp": ("logprob_recompute",),
    "train": ("batch_assembly", "forward_backward", "optimizer_step"),
    "sync": ("weight_sync",),
}
"""The five terms of `T_seq` [12.1.5], and the stages that make up each."""
WAITING = ("queue_wait",)
OBSERVING = ("observation",)
"""The probe's own work where it interrupts a framework's stages: on the clock, but none of the framework's doing."""
IDLE = WAITING + OBSERVING
"""Stages in which the system itself does no work."""
OUTSIDE = ("startup", "restore")
"""Stages that are no part of the loop and count in no window."""
COUNTS = ("records", "input_tokens", "output_tokens", "policy_tokens", "padded_tokens")
_CODED = ("stage", "trace_id", "device", "process")
_INTEGERS = ("policy_version", "step", "t_start", "t_end", *COUNTS)


@dataclass(frozen=True)
class Spans:
    """Columns in the order of the file; `row` is the row of the `spans` table; unknown steps and versions are -1."""

    row: Array
    stage: Array
    trace_id: Array
    device: Array
    process: Array
    policy_version: Array
    step: Array
    t_start: Array
    t_end: Array
    records: Array
    input_tokens: Array
    output_tokens: Array
    policy_tokens: Array
    padded_tokens: Array
    names: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.row)

    def where(self, chosen: Array) -> Self:
        """The spans of a boolean mask or of row positions."""
        columns = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name != "names"}
        return type(self)(**columns, names=self.names)

    def is_in(self, *stages: str) -> Array:
        """Which spans are of these stages."""
        wanted = [number for number, name in enumerate(self.names["stage"]) if name in stages]
        mask: Array = np.isin(self.stage, wanted)
        return mask

    def of(self, *stages: str) -> Self:
        """The spans of these stages."""
        return self.where(self.is_in(*stages))

    def stage_names(self) -> list[str]:
        """The stage of each span."""
        return [self.names["stage"][number] for number in self.stage]

    @property
    def seconds(self) -> Array:
        """The duration of each span."""
        duration: Array = (self.t_end - self.t_start) / 1e9
        return duration

    def covered_seconds(self, start: int, end: int) -> float:
        """The seconds between `start` and `end` (ns) that at least one of these spans covers."""
        begin, finish = np.maximum(self.t_start, start), np.minimum(self.t_end, end)
        some = finish > begin
        order = np.argsort(begin[some], kind="stable")
        begin, finish = begin[some][order], finish[some][order]
        if not len(begin):
            return 0.0
        reached = np.maximum.accumulate(finish)
        fresh = np.maximum(finish - np.maximum(begin, np.concatenate([[begin[0]], reached[:-1]])), 0)
        return float(fresh.sum()) / 1e9

    def union_seconds(self) -> float:
        """The seconds that at least one of these spans covers."""
        return self.covered_seconds(int(self.t_start.min()), int(self.t_end.max())) if len(self) else 0.0


def read_spans(ledger: CellLedger) -> Spans:
    """Read the `spans` table but for its details."""
    path = ledger.path("spans")
    coded = {name: codes(path, name) for name in _CODED}
    table = ledger.table("spans", _INTEGERS)
    numbers = {name: integers(table[name]) for name in _INTEGERS}
    columns = {name: numbers_of[0] for name, numbers_of in coded.items()}
    names = {name: texts[1] for name, texts in coded.items()}
    return Spans(row=np.arange(table.num_rows), names=names, **columns, **numbers)
