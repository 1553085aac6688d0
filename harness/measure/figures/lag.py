"""How old the data are when a step consumes them [12.1.4, 12.4.1, 12.4.4]."""

from typing import ClassVar

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Value
from harness.measure.view import CellView


class LagMeasure(Measure):
    """A figure of lag."""

    topic = "lag and ratios"


class Age(LagMeasure):
    """A quantile of how old a consumed record is."""

    direction = "lower"
    source = "12.4.1"
    share: ClassVar[float]

    def ages(self, view: CellView) -> Array:
        """One for each record that a step of the window consumed, unknown ones left out."""
        raise NotImplementedError

    def compute(self, view: CellView) -> Value:
        """The smallest age that at least that share of the records does not exceed."""
        ages = self.ages(view)
        if not len(ages):
            return self.none("no consumed record tells the version or the time that it was sampled at")
        return self.value(float(np.quantile(ages, self.share, method="inverted_cdf")), len(ages))


class Lag(Age):
    """Lag in optimizer steps."""

    unit = "updates"
    needs = ("trained.policy_version", "rollouts.policy_version")

    def ages(self, view: CellView) -> Array:
        """`u - v` at the start of the step; of a completion with several versions, its oldest."""
        return _known(view.tables.trained.lag[view.trained])


class PublishedLag(Age):
    """Lag in publications."""

    unit = "publications"
    needs = ("trained.published_version", "rollouts.published_version")

    def ages(self, view: CellView) -> Array:
        """Publications between the one that sampled and the newest at the start of the step."""
        return _known(view.tables.trained.published_lag[view.trained])


class AgeSeconds(Age):
    """Age in seconds."""

    unit = "s"
    needs = ("spans.t_start", "trained.step", "rollouts.t_generate_end")

    def ages(self, view: CellView) -> Array:
        """From the end of generation to the first forward pass of the step; some frameworks let a step begin before."""
        ages = view.tables.trained.age[view.trained]
        known: Array = ages[~np.isnan(ages)]
        return known


def _known(lag: Array) -> Array:
    known: Array = lag[lag >= 0]
    return known


@figure
class LagMedian(Lag):
    """Median policy lag u - v of a consumed record, in optimizer steps, at the start of the step that consumes it."""

    tag, title, share = "lag_p50", "Policy lag, median", 0.5


@figure
class LagP95(Lag):
    """95th percentile of the policy lag u - v of a consumed record, in optimizer steps."""

    tag, title, share = "lag_p95", "Policy lag, p95", 0.95


@figure
class LagMax(Lag):
    """Largest policy lag u - v of a consumed record, in optimizer steps."""

    tag, title, share = "lag_max", "Policy lag, largest", 1.0


@figure
class PublishedLagMedian(PublishedLag):
    """Median number of weight publications between a record's sampling and the step that consumes it."""

    tag, title, share = "published_lag_p50", "Lag in publications, median", 0.5


@figure
class PublishedLagP95(PublishedLag):
    """95th percentile of the weight publications between a record's sampling and the step that consumes it."""

    tag, title, share = "published_lag_p95", "Lag in publications, p95", 0.95


@figure
class PublishedLagMax(PublishedLag):
    """Largest number of weight publications between a record's sampling and the step that consumes it."""

    tag, title, share = "published_lag_max", "Lag in publications, largest", 1.0


@figure
class AgeMedian(AgeSeconds):
    """Median seconds from the end of a record's generation to the first forward pass of the step that consumes it."""

    tag, title, share = "age_seconds_p50", "Age, median", 0.5


@figure
class AgeP95(AgeSeconds):
    """95th percentile of the seconds from the end of a record's generation to the first forward pass of its step."""

    tag, title, share = "age_seconds_p95", "Age, p95", 0.95


@figure
class AgeMax(AgeSeconds):
    """Largest number of seconds from the end of a record's generation to the first forward pass of its step."""

    tag, title, share = "age_seconds_max", "Age, largest", 1.0


@figure
class TokenLag(LagMeasure):
    """Policy lag u - v of the consumed policy tokens, each at the version that sampled it: smallest, mean and largest.
    A completion that several versions sampled has one lag in the figures above, that of its oldest token."""

    tag, title, unit, direction = "token_lag", "Policy lag of a token", "updates", "lower"
    source, needs = "12.4.1", ("trained.policy_version", "rollouts.token_policy_versions")
    variants, members = "summary", ("smallest", "mean", "largest")

    def compute(self, view: CellView) -> list[Value]:
        """Weighted by the tokens that each step trains on."""
        trained, rollouts = view.tables.trained, view.tables.rollouts
        rows = np.flatnonzero(view.trained & (trained.lag >= 0) & (trained.policy_tokens > 0))
        if not len(rows):
            raise UnmeasuredError("no consumed record tells the version that it was sampled at")
        lag, sampled, tokens = trained.lag[rows], trained.rollout[rows], trained.policy_tokens[rows]
        count = int(tokens.sum())
        mean = float(((lag - rollouts.newer_mean[sampled]) * tokens).sum() / count)
        lowest = float((lag - rollouts.newer_most[sampled]).min())
        found = {"smallest": lowest, "mean": mean, "largest": float(lag.max())}
        return [self.value(value, count, variant=name) for name, value in found.items()]


@figure
class LagBound(LagMeasure):
    """Optimizer steps that a batch may be behind at its first one, as the run's settings declare it; its later steps
    are as many further behind as there were before them."""

    tag, title, unit, direction = "lag_bound", "Lag bound, declared", "updates", "none"
    source, needs = "12.4.4", ("manifest.settings",)

    def compute(self, view: CellView) -> Value:
        """From the settings in force."""
        bound = view.notes.get("settings", {}).get("lag_bound")
        if bound is None:
            return self.none("the run's settings declare no lag bound")
        return self.value(float(bound), 1)


@figure
class LagCoverage(LagMeasure):
    """Share of the consumed records whose policy lag is known."""

    tag, title, unit, direction = "lag_coverage", "Records with a known lag", "share", "higher"
    source, needs = "12.4.1", ("trained.policy_version", "rollouts.policy_version")

    def compute(self, view: CellView) -> Value:
        """Known over all."""
        lag = view.tables.trained.lag[view.trained]
        return self.ratio(float((lag >= 0).sum()), float(len(lag)), len(lag))
