"""The history of a run in an asynchronous mode: batches that mix prompts handed out at different times, tokens of
several versions in one completion, completions that nobody trains on."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adapters.verl.asynchronous.pace import mode_of
from adapters.verl.asynchronous.stamps import STAMPS, version_columns
from adapters.verl.controller import Controller, Pull
from adapters.verl.records import FIELD, Row, fate_row, mark_groups
from adapters.verl.samples import plain
from harness.probe import Probe

PROCESS = "controller"
Columns = Mapping[str, Any]


@dataclass(frozen=True)
class HandOver:
    """Weights went to rollout replicas of their own: all hold them, and generate again.

    Attributes:
        stamp: verl's number of the weights, which tokens sampled by them bear.
        t_start, t_end: perf_counter_ns; no replica generates in between.
        size: bytes, None where verl's checkpoint engine does not say.
        digest: of what was sent, which each receiver has compared; None where it does not.
    """

    stamp: int
    t_start: int
    t_end: int
    replicas: int
    size: int | None
    digest: str | None

    def columns(self) -> Row:
        """Its columns of `publications`, in place of those that the sender alone could know."""
        size = {} if self.size is None else {"bytes": self.size}
        times = {"t_start": self.t_start, "t_end": self.t_end}
        told = {"replicas": self.replicas, "acknowledged": self.replicas, "tensor_hash": self.digest}
        return {**size, **times, **told, "verified": None if self.digest is None else True}


class AsyncController(Controller):
    """`Controller`, where it is the tokens that say what weights sampled them."""

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        if mode_of(probe.cell) == "separate_async":
            # What verl takes at a time is one minibatch, and all of its updates are over that.
            self._task = self._task | {"minibatches": 1}
        self.batches = 0
        self._stamps: dict[int, tuple[int, int]] = {}
        self._latest: HandOver | None = None

    @property
    def trace_id(self) -> str:
        """What the spans of the trainer bear while it works on the batch at hand."""
        return f"train-{self.batches}"

    def handed_over(self, hand_over: HandOver) -> None:
        """Weights went to replicas of their own; the worker's record of it is published next."""
        self._latest = hand_over

    @contextmanager
    def published_aside(self, pull: Pull) -> Iterator[None]:
        """`aside`, but in the span of the start-up, where that is not over."""
        if "t_start" in self.window:
            with self.aside(self.trace_id, pull):
                yield
            return
        for name, rows in pull().items():
            if name in self._seen:
                self._seen[name] += rows
        yield

    def stamped(self, stamp: int) -> None:
        """Publish what the worker was seen to hand over, and keep what verl's number of it means."""
        told = self._latest.columns() if self._latest is not None else {}
        rows, self._seen["publications"], self._latest = self._seen["publications"], [], None
        self.publish([row | told for row in rows])
        self._stamps[stamp] = (self.version, self.published - 1)

    def trained_batch(self) -> None:
        """The trainer worker has trained on the batch at hand."""
        self.trained(self.batches)
        self.batches += 1

    def state(self) -> dict[str, Any]:
        """What the next attempt has to know: completions that verl's queue brings back bear stamps of this one."""
        return {"batches": self.batches, "stamps": [[stamp, *meant] for stamp, meant in self._stamps.items()]}

    def take_state(self, state: Mapping[str, Any]) -> None:
        """The attempt before wrote `state`."""
        self.batches = state["batches"]
        self._stamps = {stamp: (version, published) for stamp, version, published in state["stamps"]}

    def dropped(self, reason: str, columns: Columns) -> None:
        """verl throws completions away that nobody has trained on."""
        self._untrained(columns, "dropped", reason)

    def left(self, columns: Columns) -> None:
        """The run is over, and these were finished but never taken."""
        self._untrained(columns, "in_flight", "the run's last optimizer step came first")

    def _untrained(self, columns: Columns, fate: str, reason: str) -> None:
        rows = self._rows(columns)
        mark_groups(rows, self._task["group_size"])
        self.probe.accept_rollouts(rows)
        now = time.perf_counter_ns()
        self.probe.fates([fate_row(row, fate, reason, now) for row in rows])

    def _rows(self, columns: Columns) -> list[Row]:
        fields = {name: plain(values) for name, values in columns.items()}
        length = len(fields["extra_fields"])
        fields.setdefault("advantages", [()] * length)
        return [self._rollout({name: values[at] for name, values in fields.items()}) for at in range(length)]

    def _rollout(self, row: Row) -> Row:
        return super()._rollout(row) | version_columns(row["extra_fields"][FIELD][STAMPS], self._stamps)


def of_older_trainer(batch: Any) -> dict[str, list[Any]]:
    """The columns of `records` from a batch of verl's older trainers, whose rows are padded, prompts on the left.

    Args:
        batch: verl's `DataProto`, with advantages or without.
    """
    tensors, others = batch.batch, batch.non_tensor_batch
    width = tensors["prompts"].shape[1]
    attended = tensors["attention_mask"].bool()
    prompt, response = attended[:, :width], attended[:, width:]
    cut = {"prompts": prompt, **dict.fromkeys(("responses", "response_mask", "rollout_log_probs"), response)}
    columns = {
        name: [values[keep].tolist() for values, keep in zip(tensors[name], kept, strict=True)]
        for name, kept in cut.items()
    }
    if "advantages" in tensors:
        advantages = zip(tensors["advantages"], response, strict=True)
        columns["advantages"] = [values[keep].tolist() for values, keep in advantages]
    said = batch.meta_info.get("reward_extra_keys", [])
    columns["extra_fields"] = [
        {FIELD: others[FIELD][at], "reward_extra_info": {key: others[key][at] for key in said}}
        for at in range(len(batch))
    ]
    for name in others[FIELD][0]["row"]:
        columns[name] = [ours["row"][name] for ours in others[FIELD]]
    return columns
