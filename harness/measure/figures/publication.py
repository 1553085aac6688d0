"""Publications of weights: what they take, whether they were taken, and mismatch right after them [12.4.3, 12.4.5]."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from harness.measure.columns import Array
from harness.measure.figures.mismatch import bucket_label, length_buckets
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Direction, Value
from harness.measure.view import CellView

TIMES = "publications.t_start, publications.t_end"


class PublicationMeasure(Measure):
    """A figure of publications."""

    topic = "publication"
    source = "12.4.5"


def published(view: CellView) -> list[dict[str, Any]]:
    """The publications that began in the window and are served.

    Raises:
        UnmeasuredError: there is none.
    """
    window = view.window
    rows = view.tables.ledger.table("publications").to_pylist()
    inside = [row for row in rows if row["ok"] and window.t_start <= row["t_start"] < window.t_end]
    if not inside:
        raise UnmeasuredError("no publication of the window is served")
    return inside


class PublicationSeconds(PublicationMeasure):
    """A quantile of publication times."""

    unit = "s"
    direction = "lower"
    needs = (TIMES, "publications.ok")
    share: ClassVar[float]

    def compute(self, view: CellView) -> Value:
        """Interpolated linearly."""
        seconds = [(row["t_end"] - row["t_start"]) / 1e9 for row in published(view)]
        return self.value(float(np.quantile(seconds, self.share)), len(seconds))


@figure
class PublicationMedian(PublicationSeconds):
    """Median seconds of a publication of the window, from its start until every replica serves it."""

    tag, title, share = "publication_seconds_p50", "Publication, median", 0.5


@figure
class PublicationMax(PublicationSeconds):
    """Longest publication of the window, from its start until every replica serves it."""

    tag, title, share = "publication_seconds_max", "Publication, longest", 1.0


@figure
class PublicationBytes(PublicationMeasure):
    """Bytes that a publication of the window moves, on average; 0 where trainer and engine share the weights."""

    tag, title, unit, direction = "publication_bytes", "Bytes of a publication", "bytes", "lower"
    needs = ("publications.bytes", "publications.ok")

    def compute(self, view: CellView) -> Value:
        """Their mean."""
        rows = published(view)
        return self.ratio(float(sum(row["bytes"] for row in rows)), float(len(rows)), len(rows))


@figure
class PublicationsRefused(PublicationMeasure):
    """Publications of the whole run that were refused: cut, corrupted or not verified. What was served before stays."""

    tag, title, unit, direction = "publications_refused", "Publications refused", "publications", "lower"
    needs = ("publications.ok",)

    def compute(self, view: CellView) -> Value:
        """Their number."""
        oks = view.tables.ledger.table("publications", ["ok"])["ok"].to_pylist()
        if not oks:
            return self.none("nothing was published")
        return self.value(float(oks.count(False)), len(oks))


@dataclass(frozen=True)
class Controls:
    """Control completions: one element a token with both log-probs known; `bucket` is that of its completion."""

    difference: Array
    bucket: Array


def controls(view: CellView) -> Controls:
    """The control tokens of the whole run.

    Raises:
        UnmeasuredError: there is none.
    """
    rows = view.tables.ledger.table("controls", ["tokens", "engine_logprobs", "trainer_logprobs"]).to_pylist()
    differences, lengths = [], []
    for row in rows:
        for theirs, ours in zip(row["engine_logprobs"], row["trainer_logprobs"], strict=True):
            if theirs is not None and ours is not None and math.isfinite(ours - theirs):
                differences.append(ours - theirs)
                lengths.append(row["tokens"])
    if not differences:
        raise UnmeasuredError("no control completion was scored by engine and trainer after a publication")
    return Controls(np.array(differences), length_buckets(np.array(lengths)))


class ControlMismatch(Measure):
    """A figure of the mismatch of control completions, over all and by bucket of their length."""

    unit = "nats"
    direction: ClassVar[Direction] = "lower"
    topic = "mismatch"
    source = "12.4.3"
    needs = ("controls.engine_logprobs", "controls.trainer_logprobs", "controls.tokens")
    variants = "completion length"

    def compute(self, view: CellView) -> list[Value]:
        """All first, then bucket by bucket."""
        found = controls(view)
        out = [self.value(self.reduce(found.difference), len(found.difference))]
        for number in np.unique(found.bucket):
            part = found.difference[found.bucket == number]
            out.append(self.value(self.reduce(part), len(part), variant=bucket_label(int(number))))
        return out

    def reduce(self, difference: Array) -> float:
        """The figure of some tokens' log pi - log mu."""
        raise NotImplementedError


@figure
class ControlMean(ControlMismatch):
    """Mean |delta log p| between trainer and engine over the tokens of control completions, sampled right after a
    publication, of the whole run."""

    tag, title = "control_mismatch_mean", "Mismatch after a publication, mean |delta log p|"

    def reduce(self, difference: Array) -> float:
        """Sum over count."""
        return float(np.abs(difference).mean())


@figure
class ControlMax(ControlMismatch):
    """Largest |delta log p| between trainer and engine of a token of a control completion, sampled right after a
    publication, of the whole run."""

    tag, title = "control_mismatch_max", "Mismatch after a publication, largest |delta log p|"

    def reduce(self, difference: Array) -> float:
        """The largest."""
        return float(np.abs(difference).max())


@figure
class ControlK1(ControlMismatch):
    """k1 estimate of KL(engine, trainer) from control completions: mean of log mu - log pi; may be negative."""

    tag, title, direction = "control_mismatch_k1", "Mismatch after a publication, k1", "none"

    def reduce(self, difference: Array) -> float:
        """Minus the mean of log w."""
        return 0.0 - float(difference.mean())


@figure
class ControlK3(ControlMismatch):
    """k3 estimate of KL(engine, trainer) from control completions: mean of w - 1 - log w; never negative."""

    tag, title = "control_mismatch_k3", "Mismatch after a publication, k3"

    def reduce(self, difference: Array) -> float:
        """Sum over count."""
        with np.errstate(over="ignore"):
            value = float((np.expm1(difference) - difference).mean())
        return value if math.isfinite(value) else math.inf
