"""What a measure gives back: a value with its evidence, or the reason why there is none."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Direction = Literal["higher", "lower", "none"]
"""Which way is better; `none` where a figure describes and does not judge."""


@dataclass(frozen=True)
class Value:
    """One figure of one cell.

    Attributes:
        tag: the tag of the measure's class.
        variant: which member of a family of figures (a stage, a phase, a bucket of lengths); empty where there is one.
        value: in `unit`; None where it was not measured, infinite where the definition says so.
        reason: why it was not measured (never empty where `value` is None), or what to know beside it.
        evidence: the ledger table and columns that show it.
        n: how many records, tokens, spans or updates it rests on.
        numerator, denominator: the two counts of a rate or a share, so that both can be counted again.
        absent: the stage does not exist in this system (told apart from one that was not measured).
        written: the framework's own word, of a run that was recorded elsewhere; nothing of ours measured it.
    """

    tag: str
    value: float | None
    unit: str
    evidence: str
    n: int
    variant: str = ""
    reason: str | None = None
    numerator: float | None = None
    denominator: float | None = None
    absent: bool = False
    written: bool = False

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError(f"{self.tag} {self.variant}: a value that is not there needs a reason")
        if self.value is not None and math.isnan(self.value):
            raise ValueError(f"{self.tag} {self.variant}: not a number is not a value")

    @property
    def name(self) -> str:
        """Tag and variant in one word, e.g. `stage_p50[decode]`."""
        return f"{self.tag}[{self.variant}]" if self.variant else self.tag

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: an infinite value is the string `Infinity`."""
        return asdict(self) | {"value": json_number(self.value)}


def json_number(value: float | None) -> float | str | None:
    """A number that strict JSON can hold; an infinite one becomes `Infinity` or `-Infinity`, which float() reads."""
    if value is None or math.isfinite(value):
        return value
    return "Infinity" if value > 0 else "-Infinity"
