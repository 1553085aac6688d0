"""How old the data are when a step consumes them [12.1.4, 12.4.1, 12.4.4]."""

from typing import ClassVar

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, figure
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
class LagCoverage(LagMeasure):
    """Share of the consumed records whose policy lag is known."""

    tag, title, unit, direction = "lag_coverage", "Records with a known lag", "share", "higher"
    source, needs = "12.4.1", ("trained.policy_version", "rollouts.policy_version")

    def compute(self, view: CellView) -> Value:
        """Known over all."""
        lag = view.tables.trained.lag[view.trained]
        return self.ratio(float((lag >= 0).sum()), float(len(lag)), len(lag))


class Stale(LagMeasure):
    """Records that were rejected because they were too old."""

    direction = "lower"
    source = "12.4.4"

    def rejected(self, view: CellView) -> Array:
        """Which rollouts of the window."""
        return view.rollouts & view.tables.rollouts.has_status("rejected_stale")


@figure
class StaleRecords(Stale):
    """Records of the window that were rejected as stale."""

    tag, title, unit, needs = "stale_rejected_records", "Rejected as stale", "records", ("rollouts.status",)

    def compute(self, view: CellView) -> Value:
        """Their number."""
        return self.value(float(self.rejected(view).sum()), int(view.rollouts.sum()))


@figure
class StaleTokens(Stale):
    """Policy tokens of the records of the window that were rejected as stale."""

    tag, title, unit = "stale_rejected_tokens", "Tokens rejected as stale", "tokens"
    needs = ("rollouts.status", "rollouts.policy_mask")

    def compute(self, view: CellView) -> Value:
        """Their tokens."""
        return self.value(
            float(view.tables.rollouts.policy_tokens[self.rejected(view)].sum()), int(view.rollouts.sum())
        )
