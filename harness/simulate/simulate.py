"""One simulation: its figures, and what it wrote where it was asked to write."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.simulate.both import Both
from harness.simulate.ratios import Ratios
from harness.simulate.recorder import Recorder
from harness.simulate.settings import Settings
from harness.simulate.totals import Totals
from harness.simulate.world import World


@dataclass(frozen=True)
class Simulated:
    """How a simulation ended, in simulated seconds, its events, and the figures of `Totals.figures`."""

    name: str
    seconds: float
    steps: int
    events: int
    figures: dict[str, Any]


def simulate(settings: Settings, recorder: Recorder | None = None) -> Simulated:
    """Simulate a cell; without a recorder memory does not grow with the simulated time.

    Raises:
        UserError: the settings are refused; see `harness.simulate.rates.check`.
        SystemFailure: the loop that they describe stands still.
    """
    ratios = Ratios(settings.synthetic, settings.staleness, np.random.default_rng([settings.seed, 2]))
    totals = Totals(settings, ratios)
    ended = World(settings, totals if recorder is None else Both(totals, recorder)).run()
    return Simulated(settings.name, ended.seconds, ended.steps, ended.events, totals.figures(ended.seconds))
