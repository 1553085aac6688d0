"""What a manifest says of the series of a run that was recorded elsewhere: whose words its numbers are."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

NUMBERS = ("first", "last")


@dataclass(frozen=True)
class NativeSeries:
    """One series of the table `native`.

    Attributes:
        stored: its key in the table.
        key: the framework's own key, as written.
        part: what tells it from another series of that key (a process, validation, an attempt that was replaced, a
            difference from step to step); empty where nothing does.
        trained: whether it speaks of training steps, in the attempt that counts.
        files: the names of the files that have it.
        known: whether the framework's key map has the key; all below is None or empty where it has not.
        unit, scope, of: what the number is, as in the key map.
        scale: what to multiply it by to have it in our unit.
        measure: the figure of ours that it is, or that it resembles; `same` says which of the two.
        differs_because: why it is not that figure.
        quantity, stage: by which name the audit's rules know it, and of which stage; None where no rule asks for it.
        our_stage: of seconds of a stage, our stage that they are nearest to, as in the key map.
        n, first, last: how many numbers, and the first and last of them, as written.
    """

    stored: str
    key: str
    part: str
    trained: bool
    files: list[str]
    known: bool
    unit: str | None
    scope: str | None
    of: str | None
    scale: float
    measure: str | None
    same: bool
    differs_because: str | None
    n: int
    first: float
    last: float
    quantity: str | None = None
    stage: str = ""
    our_stage: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: a number that it has not is a string, which float() reads."""
        return asdict(self) | {name: as_json(getattr(self, name)) for name in NUMBERS}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read back."""
        return cls(**dict(content) | {name: float(content[name]) for name in NUMBERS})


def as_json(value: float) -> float | str:
    """A number that strict JSON can hold, or `NaN`, `Infinity`, `-Infinity` as a string."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
