"""Whether what was measured is a steady state [12.3.5]. Nothing is cut by it: it says what to make of the figures."""

from harness.measure.figures.time import TimeMeasure
from harness.measure.measure import figure
from harness.measure.steady import warmup_by_rule, window_drift
from harness.measure.values import Value
from harness.measure.view import CellView


@figure
class WarmupByRule(TimeMeasure):
    """Optimizer steps that a rule would drop: the fewest, from those that were dropped on, after which the slope of the
    step seconds (Theil and Sen) has a 95 % interval with zero in it, or surely comes to less than 1 % over all that is
    left; at most half of the run. It cuts nothing: every repeat of a cell, and both sides of a pair, are measured over
    the same steps."""

    tag, title, unit, direction = "warmup_steps_by_rule", "Warm-up, by rule", "steps", "none"
    source, needs = "12.3.5", ("updates.t_end", "manifest.window")

    def compute(self, view: CellView) -> Value:
        """Their number; no value, with the drift that is left, where the run is never steady."""
        cut, total = warmup_by_rule(view), len(view.tables.updates["step"])
        if cut is not None:
            return self.value(float(cut), total)
        return self.none(f"not steady: its steps get {_change(window_drift(view).slope)} from each to the next")


@figure
class StepDrift(TimeMeasure):
    """Theil and Sen's slope of the step seconds over the window, a step, as a share of their median: 0.01 is steps that
    get 1 % longer from each to the next. A policy that learns may write longer or shorter completions: that is a drift
    of the work, not of the machine."""

    tag, title, unit, direction = "step_seconds_drift", "Drift of the step time, a step", "share", "none"
    source, needs = "12.3.5", ("updates.t_end", "manifest.window")

    def compute(self, view: CellView) -> Value:
        """The slope."""
        drift = window_drift(view)
        return self.value(drift.slope, drift.steps)


def _change(slope: float) -> str:
    return f"{abs(slope):.2%} {'longer' if slope > 0 else 'shorter'}"
