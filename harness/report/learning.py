"""The learning checks of a run, for people."""

from typing import Any

from harness.compare.effect import CONFIDENCE
from harness.report import format as fmt

LEARNING = (
    "Is the reward at equal samples what the seeds of the baseline lead one to expect? Each part of the run has a "
    f"band, and one that learns as the baseline does leaves any of them in at most {100 * (1 - CONFIDENCE):.0f} % of "
    "runs. Whoever leaves one is not comparable in speed or cost: it does other work."
)


def check_title(check: dict[str, Any]) -> str:
    """Whom a check is of."""
    return f"{check['adapter']} · {fmt.words(check['layout'])}"
