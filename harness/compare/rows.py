"""One line of a comparison: a figure of one adapter in one layout on one track, over its repeats."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.measure.values import Direction, json_number

State = Literal["measured", "as written", "not measured", "absent stage", "not comparable", "failed", "not run"]
"""`as written`: the framework's own word, of a run that was recorded elsewhere."""

_WHAT = ("adapter", "layout", "track", "measure")
_NUMBERS = ("value", "unit", "direction", "n", "low", "high")
JSON_KEYS = (*_WHAT, *_NUMBERS, "state", "reason", "evidence")


@dataclass(frozen=True)
class Row:
    """A figure over repeats.

    Attributes:
        measure: the tag of the measure's class; with `variant` (a stage, a phase, a bucket) unique in its cell.
        value: the median over the repeats.
        n: the number of repeats that it rests on.
        low, high: percentile bootstrap interval of the median (see `harness.compare.statistics.INTERVAL_NOTE`).
        state: why there is a value or none; `not comparable` keeps the value.
        reason: the cause of any state but `measured`; what to know beside a measured value.
        evidence: the ledger table and columns that show it.
        ratio, ratio_low, ratio_high: to the reference on the same layout and track, paired by repeat, with its 95 %
            interval; None where there is nothing to compare with. Descriptive: it ranks nothing.
        pairs: the number of pairs of that ratio.
        detectable: the smallest relative change that these repeats could have detected (80 % power, 5 % two-sided).
        repeats: the value of each repeat, in their order.
    """

    adapter: str
    layout: str
    track: str
    measure: str
    value: float | None
    unit: str
    direction: Direction
    n: int
    low: float | None
    high: float | None
    state: State
    reason: str | None
    evidence: str
    variant: str = ""
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    pairs: int = 0
    detectable: float | None = None
    repeats: tuple[float | None, ...] = ()

    @property
    def name(self) -> str:
        """Tag and variant in one word, e.g. `stage_p50[decode]`."""
        return f"{self.measure}[{self.variant}]" if self.variant else self.measure

    def as_dict(self) -> dict[str, Any]:
        """The row of `rlaxes report --json`: `JSON_KEYS`; `measure` has the variant, infinities are strings."""
        row = {key: getattr(self, key) for key in JSON_KEYS} | {"measure": self.name}
        return row | {key: json_number(getattr(self, key)) for key in ("value", "low", "high")}

    def as_record(self) -> dict[str, Any]:
        """Every field, for a report that is read back; infinities are strings."""
        numbers = ("value", "low", "high", "ratio", "ratio_low", "ratio_high", "detectable")
        fixed = {name: json_number(getattr(self, name)) for name in numbers}
        return asdict(self) | fixed | {"repeats": [json_number(value) for value in self.repeats]}
