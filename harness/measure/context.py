"""What the measures are told beside the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MeasureContext:
    """Facts of the run that are not in a cell's ledger.

    Attributes:
        task: the task's settings, as in `cell.json`.
        warmup_steps: optimizer steps at the start that no figure of time or rate counts.
        price: {amount, currency, per: "device_hour", date, source}; None or a null amount: there is no price.
        roofline: what `harness.probe.roofline` measured on this machine in this run; None: it was not measured.
        native: what the framework says of itself: [{key, definition, measure, differs_because}].
    """

    task: dict[str, Any]
    warmup_steps: int
    price: dict[str, Any] | None = None
    roofline: dict[str, Any] | None = None
    native: Sequence[dict[str, Any]] = ()
