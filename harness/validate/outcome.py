"""What became of a prediction: a number beside the one that was reported, or a refusal with its reason."""

from collections.abc import Callable
from dataclasses import dataclass


class Refused(Exception):
    """Nothing is predicted, and why."""


@dataclass(frozen=True)
class Check:
    """A prediction beside what was reported, in seconds of a step where nothing else is said.

    Attributes:
        formula: the prediction with its numbers.
        fitted: the row that a constant in it was fitted on; empty where nothing is fitted.
    """

    row: str
    formula: str
    predicted: float
    reported: float
    fitted: str = ""

    @property
    def error(self) -> float:
        """Predicted over reported, less 1."""
        return self.predicted / self.reported - 1


@dataclass(frozen=True)
class Refusal:
    """A row about which nothing is predicted."""

    row: str
    reason: str


Outcome = Check | Refusal


def attempt(row: str, predict: Callable[[], Check]) -> Outcome:
    """The check, or the refusal that it ended in."""
    try:
        return predict()
    except Refused as refused:
        return Refusal(row, str(refused))


def checks(outcomes: list[Outcome]) -> list[Check]:
    """Those that are predictions."""
    return [outcome for outcome in outcomes if isinstance(outcome, Check)]


def refusals(outcomes: list[Outcome]) -> list[Refusal]:
    """Those that are none."""
    return [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
