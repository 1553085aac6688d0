"""Figures of a simulation, kept while it runs in memory that does not grow with it."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.simulate.ratios import Ratios
from harness.simulate.recorder import Step
from harness.simulate.records import Group, Request, Sample
from harness.simulate.settings import Settings


@dataclass
class Stock:
    """A level over time: its mean and its largest value."""

    area: float = 0.0
    level: float = 0.0
    since: float = 0.0
    most: float = 0.0

    def set(self, t: float, level: float) -> None:
        """It is `level` from `t` on."""
        self.area += self.level * (t - self.since)
        self.level, self.since, self.most = level, t, max(self.most, level)


@dataclass
class Totals:
    """Counts and times; `figures` divides. Memory is bounded by the number of different lags and reasons."""

    settings: Settings
    ratios: Ratios
    steps: int = 0
    batches: int = 0
    trained_records: int = 0
    trained_tokens: int = 0
    trained_seconds: float = 0.0
    sync_seconds: float = 0.0
    waited_seconds: float = 0.0
    age_seconds: float = 0.0
    lags: Counter[int] = field(default_factory=Counter)
    dropped_records: Counter[str] = field(default_factory=Counter)
    dropped_tokens: int = 0
    lost_tokens: int = 0
    left_tokens: int = 0
    deaths: int = 0
    restarts: int = 0
    redone_steps: int = 0
    redone_tokens: int = 0
    checkpoint_seconds: float = 0.0
    restart_seconds: float = 0.0
    token_ess: float = 0.0
    sequence_ess: float = 0.0
    above_cap: float = 0.0
    lr_scale: float = 0.0
    tokens: Stock = field(default_factory=Stock)
    records: Stock = field(default_factory=Stock)
    closed_seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    overshoot: int = 0
    _closed: tuple[str, float, int] | None = None
    _saving: tuple[int, int, int, int] = (0, 0, 0, 0)
    _kept: tuple[int, int, int, int] = (0, 0, 0, 0)
    measured_batches: int = 0

    def queue(
        self, t: float, event: str, records: int, tokens: int, depth: tuple[int, int, int], reason: str | None
    ) -> None:
        """See `Recorder`."""
        self.records.set(t, depth[0])
        self.tokens.set(t, depth[1])
        if event in ("close", "open"):
            self._until(t)
            self._closed = (reason, t, depth[1]) if reason else None
        elif event == "put" and self._closed:
            self.overshoot = max(self.overshoot, depth[1] - self._closed[2])

    def waited(self, start: float, end: float, records: int) -> None:
        """See `Recorder`."""
        self.waited_seconds += end - start

    def taken(self, batch: int, groups: Sequence[Group], version: int, t: float) -> None:
        """See `Recorder`."""
        for group in groups:
            self.age_seconds += len(group.samples) * (t - group.t_put)

    def scored(self, batch: int, version: int, start: float, end: float, samples: Sequence[Sample]) -> None:
        """See `Recorder`."""
        self.trained_seconds += end - start

    def stepped(self, step: Step) -> None:
        """See `Recorder`."""
        self.steps += 1
        self.trained_seconds += step.end - step.start
        self.lr_scale += step.lr_scale

    def batch_done(self, batch: int, version: int, samples: Sequence[Sample], t: float) -> None:
        """See `Recorder`."""
        self.batches += 1
        self.measured_batches += 1
        self.trained_records += len(samples)
        self.trained_tokens += sum([sample.length for sample in samples])
        self.lags.update([version - sample.version for sample in samples])
        if samples:
            token, sequence, above = self.ratios.shares(samples, version)
            self.token_ess += token
            self.sequence_ess += sequence
            self.above_cap += above

    def published(self, number: int, version: int, prepared: tuple[float, float], served: tuple[float, float]) -> None:
        """See `Recorder`."""
        self.sync_seconds += prepared[1] - prepared[0] + served[1] - served[0]

    def dropped(self, samples: Sequence[tuple[Sample, str]], t: float) -> None:
        """See `Recorder`."""
        for sample, reason in samples:
            self.dropped_records[reason.split(":")[0]] += 1
            self.dropped_tokens += sample.length

    def lost(self, requests: Sequence[Request], worker: str, t: float) -> None:
        """See `Recorder`."""
        self.deaths += 1
        self.lost_tokens += sum(sample.made for request in requests for sample in request.samples)

    def saved(self, batches: Sequence[Sequence[Sample]]) -> None:
        """See `Recorder`."""
        self._saving = self._done

    def checkpointed(self, step: int, version: int, start: float, end: float) -> None:
        """See `Recorder`."""
        self._kept = self._saving
        self.checkpoint_seconds += end - start

    def died(self, requests: Sequence[Request], samples: Sequence[Sample], t: float) -> None:
        """See `Recorder`. What was done since the checkpoint is taken back, and counted as done in vain."""
        lost = [now - kept for now, kept in zip(self._done, self._kept, strict=True)]
        self.steps, self.batches, self.trained_records, self.trained_tokens = self._kept
        self.redone_steps, self.redone_tokens = self.redone_steps + lost[0], self.redone_tokens + lost[3]
        self.lost_tokens += sum(sample.made for request in requests for sample in request.samples)
        self.lost_tokens += sum(sample.length for sample in samples)
        self.records.set(t, 0)
        self.tokens.set(t, 0)
        self._until(t)
        self._closed = None

    def restarted(self, step: int, version: int, died: float, ready: float) -> None:
        """See `Recorder`."""
        self.restarts += 1
        self.restart_seconds += ready - died

    @property
    def _done(self) -> tuple[int, int, int, int]:
        return self.steps, self.batches, self.trained_records, self.trained_tokens

    def left(self, samples: Sequence[Sample], t: float) -> None:
        """See `Recorder`."""
        self.left_tokens += sum(sample.length for sample in samples)
        self.records.set(t, self.records.level)
        self.tokens.set(t, self.tokens.level)
        self._until(t)

    def _until(self, t: float) -> None:
        if self._closed:
            self.closed_seconds[self._closed[0]] += t - self._closed[1]

    def figures(self, seconds: float) -> dict[str, Any]:
        """The figures of a run that lasted so many simulated seconds; null where there was nothing to divide by."""
        batches: float = self.batches or math.nan
        measured: float = self.measured_batches or math.nan
        settled = self.trained_tokens + self.dropped_tokens
        out: dict[str, Any] = {
            "seconds": seconds,
            "steps": self.steps,
            "trained_rollouts": self.trained_records,
            "tokens_per_s": self.trained_tokens / seconds if seconds else math.nan,
            "period_s": seconds / batches,
            "trainer_busy": self.trained_seconds / seconds if seconds else math.nan,
            "trainer_waiting": self.waited_seconds / seconds if seconds else math.nan,
            "lag_mean": _mean(self.lags),
            "lag_p95": _quantile(self.lags, 0.95),
            "lag_max": max(self.lags, default=math.nan),
            "age_mean_s": self.age_seconds / (sum(self.lags.values()) or math.nan),
            "ess_tokens": self.token_ess / measured,
            "ess_sequences": self.sequence_ess / measured,
            "above_cap": self.above_cap / measured if self.settings.staleness.correction != "none" else math.nan,
            "learning_rate_share": self.lr_scale / ((self.steps + self.redone_steps) or math.nan),
            "depth_mean_tokens": self.tokens.area / (self.tokens.since or math.nan),
            "depth_max_tokens": self.tokens.most,
            "overshoot_tokens": self.overshoot,
            "backpressure": sum(self.closed_seconds.values()) / seconds if seconds else math.nan,
            "dropped_share": self.dropped_tokens / settled if settled else math.nan,
            "lost_tokens": self.lost_tokens,
            "left_tokens": self.left_tokens,
            "replica_deaths": self.deaths,
            "restarts": self.restarts,
            "redone_steps": self.redone_steps,
            "redone_tokens": self.redone_tokens,
            "restart_s": self.restart_seconds,
            "checkpoint_s": self.checkpoint_seconds,
        }
        numbers = {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in out.items()}
        return numbers | {"dropped_records": dict(sorted(self.dropped_records.items()))}


def _mean(lags: Counter[int]) -> float:
    whole = sum(lags.values())
    return sum(lag * count for lag, count in lags.items()) / whole if whole else math.nan


def _quantile(lags: Counter[int], share: float) -> float:
    left = share * sum(lags.values())
    for lag, count in sorted(lags.items()):
        left -= count
        if left <= 0:
            return lag
    return math.nan
