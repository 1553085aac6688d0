"""Writes the history of a run from the process of verl's trainer: rollouts, fates, training, updates, publications.

verl's trainer gives it batches and moments, its trainer worker what it saw (`adapters.verl.watch`).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from adapters.verl.records import FIELD, Facts, Row, fate_row, mark_groups, tokens_row, verdict_columns
from adapters.verl.samples import plain
from adapters.verl.settings import updates_per_batch
from harness.probe import Probe

Pull = Callable[[], Mapping[str, list[Any]]]
DEVICE = "controller"
"""The device label of the spans of verl's controlling process."""
FIELDS = (
    "prompts",
    "responses",
    "response_mask",
    "rollout_log_probs",
    "advantages",
    "extra_fields",
    "extra_info",
    "session_id",
    "rlaxes_round",
)
"""What is read of each completion from verl's TransferQueue."""


class Controller:
    """Spans of verl's controlling process, and the run's history."""

    def __init__(self, probe: Probe) -> None:
        """`steps` and `version` are optimizer steps taken and applied, `published` hand-overs of weights."""
        self.probe = probe
        self.steps = self.version = self.published = 0
        self.window: dict[str, int] = {}
        self._facts, self._task = Facts.of(probe.cell), probe.cell["task"]
        self._waiting: dict[str, Row] = {}
        self._quiet = 0
        self._seen: dict[str, list[Row]] = {"trained": [], "updates": [], "publications": []}

    def go_on(self, steps: int, version: int, published: int) -> None:
        """Count on from a checkpoint."""
        self.steps, self.version, self.published = steps, version, published

    # Spans

    @contextmanager
    def span(self, stage: str, trace_id: str) -> Iterator[Any]:
        """Time a stage of this process."""
        where: dict[str, Any] = {"policy_version": self.version, "step": self.steps, "device": DEVICE}
        with self.probe.span(stage, trace_id=trace_id, **where) as span:
            yield span
        self._quiet = time.perf_counter_ns()

    def waited(self, start: int, trace_id: str) -> None:
        """This process waited for completions since `start`."""
        where: dict[str, Any] = {"policy_version": self.version, "step": self.steps, "device": DEVICE}
        self._quiet = time.perf_counter_ns()
        self.probe.add_span("queue_wait", start, self._quiet, trace_id=trace_id, **where)

    @contextmanager
    def aside(self, trace_id: str, pull: Pull) -> Iterator[None]:
        """Work of our own, where it holds verl's up: takes what the trainer worker saw, then does what the caller does.

        Args:
            pull: asks the trainer worker for its records.
        """
        at = time.perf_counter_ns()
        with self.span("observation", trace_id):
            records = pull()
            self._between(records["busy"], at, trace_id)
            for name, rows in self._seen.items():
                rows += records[name]
            yield

    def _between(self, busy: Sequence[tuple[int, int]], end: int, trace_id: str) -> None:
        """What this process did from its last span until `end` while the trainer worker was not at work: TransferQueue,
        Ray, advantages. `busy` is when the worker was."""
        edges = [self._quiet, *(t for pair in sorted(busy) for t in pair if self._quiet < t < end), end]
        where: dict[str, Any] = {
            "policy_version": self.version,
            "step": self.steps,
            "device": DEVICE,
            "trace_id": trace_id,
        }
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            if stop > start:
                self.probe.add_span("batch_assembly", start, stop, **where)

    # History

    def sampled(self, keys: Sequence[str], tags: Sequence[Mapping[str, Any]], data: Any) -> None:
        """A batch was taken for training, and its advantages are known.

        Args:
            keys: TransferQueue's; tags: what it says of each.
            data: `FIELDS` of each.
        """
        columns = {name: plain(data[name]) for name in FIELDS}
        rows = []
        for at, (_, tag) in enumerate(zip(keys, tags, strict=True)):
            if not tag.get("is_padding", False):
                rows.append(self._rollout({name: values[at] for name, values in columns.items()}))
        mark_groups(rows, self._task["group_size"])
        self.probe.accept_rollouts(rows)
        self._waiting |= {row["sample_id"]: row for row in rows}

    def _rollout(self, row: Row) -> Row:
        extra = row["extra_fields"]
        ours = extra[FIELD]
        found = tokens_row(row, ours, self._facts) | verdict_columns(extra["reward_extra_info"])
        advantage = float(row["advantages"][0]) if len(row["advantages"]) else None
        versions = {"policy_version": ours["policy_version"], "published_version": ours["published_version"]}
        return found | versions | {"advantage": advantage}

    def trained(self, number: int) -> None:
        """The trainer worker has trained on the generated batch `number` and handed the weights over."""
        seen, parts = self._seen, int(self._task["minibatches"])
        self._seen = {name: [] for name in seen}
        position = {}
        for at, update in enumerate(seen["updates"]):
            epoch, part = divmod(at % updates_per_batch(self._task), parts)
            name = f"batch-{number}-mb-{part}" + (f"-e{epoch}" if epoch else "")
            position[update["step"]] = {"batch_id": name, "epoch": epoch}
            clip = {"clip_low": self._task["clip_low"], "clip_high": self._task["clip_high"]}
            self.probe.update(**update, **clip, batch_id=name)
            self.steps, self.version = update["step"] + 1, update["policy_version_after"]
            self.window["t_end"] = update["t_end"]
        published = self.published - 1
        self.probe.trained([row | position[row["step"]] | {"published_version": published} for row in seen["trained"]])
        self._end(seen["trained"])
        self.publish(seen["publications"])

    def _end(self, trained: Sequence[Row]) -> None:
        now = time.perf_counter_ns()
        named = dict.fromkeys(row["sample_id"] for row in trained)
        ended = [self._waiting.pop(name) for name in named if name in self._waiting]
        self.probe.fates([fate_row(row, "trained", None, now) for row in ended])

    def publish(self, publications: Sequence[Row]) -> None:
        """Weights were handed over to the rollout engine."""
        for row in publications:
            whole = {"kind": "full", "replicas": 1, "acknowledged": 1, "tensor_hash": None, "verified": None}
            self.probe.publication(**whole | row, ok=True, detail=None)
            self.published = row["published_version"] + 1
            self.version = row["policy_version"]

    def close(self) -> None:
        """The run is over: what was taken for training and never trained on is in flight."""
        now = time.perf_counter_ns()
        why = "the run's last optimizer step came first"
        self.probe.fates([fate_row(row, "in_flight", why, now) for row in self._waiting.values()])
        self.probe.note("window", self.window)
        self.probe.close()
