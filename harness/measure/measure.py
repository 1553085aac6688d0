"""What a figure is: one class, with its tag, unit, direction, definition and source."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from harness.measure.values import Direction, Value

if TYPE_CHECKING:
    from harness.measure.view import CellView

TOPICS = ("throughput", "stages", "lag and ratios", "mismatch", "memory", "cost", "work done", "integrity")

REGISTERED: "list[type[Measure]]" = []
"""Every class with a tag of its own, in the order of its definition; `harness.measure.api.catalogue` sorts it."""


class NotMeasured(Exception):  # noqa: N818 - an outcome with a reason, not an error
    """Raised by a figure that this ledger cannot give; the message is the reason in the report."""


class Measure(ABC):
    """One figure of a cell, or one family of them (a stage, a phase, a bucket each).

    Attributes:
        tag: its name in rows and on the command line.
        title, definition: what a reader is told; one or two plain sentences.
        source: the step of the module, or the section of MEASURES.md.
        evidence: the ledger tables and columns that it is computed from.
    """

    tag: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    direction: ClassVar[Direction]
    topic: ClassVar[str]
    definition: ClassVar[str]
    source: ClassVar[str]
    evidence: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Register every class that has a tag of its own."""
        super().__init_subclass__(**kwargs)
        if "tag" in cls.__dict__:
            REGISTERED.append(cls)

    def compute(self, view: "CellView") -> list[Value]:
        """The values of this figure in a cell; where the ledger cannot give it, one null value with the reason."""
        try:
            return self.figures(view)
        except NotMeasured as why:
            return [self.nothing(str(why))]

    @abstractmethod
    def figures(self, view: "CellView") -> list[Value]:
        """The values.

        Raises:
            NotMeasured: with the reason, where the ledger cannot give them.
        """

    def value(self, value: float, n: int, **fields: Any) -> Value:
        """A value of this figure that rests on `n` items."""
        return Value(self.tag, float(value), self.unit, fields.pop("evidence", self.evidence), int(n), **fields)

    def nothing(self, reason: str, **fields: Any) -> Value:
        """No value, and why."""
        return Value(self.tag, None, self.unit, fields.pop("evidence", self.evidence), 0, reason=reason, **fields)

    def share(self, part: float, whole: float, **fields: Any) -> Value:
        """`part / whole` with both counts beside it, resting on `whole` items.

        Raises:
            NotMeasured: there is nothing to take a share of.
        """
        if not whole:
            raise NotMeasured(f"there is nothing to take a share of: {self.evidence}")
        n = int(fields.pop("n", whole))
        return self.value(part / whole, n, numerator=float(part), denominator=float(whole), **fields)
