"""What a figure is: one class, with its tag, unit, direction, definition and source."""

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from harness.measure.values import Direction, Value

if TYPE_CHECKING:
    from harness.measure.view import CellView

TOPICS = (
    "throughput",
    "stages",
    "queue",
    "lag and ratios",
    "mismatch",
    "publication",
    "memory",
    "cost",
    "work done",
    "recovery",
    "integrity",
)


class UnmeasuredError(Exception):
    """This ledger cannot give a figure; the message is the reason that the report prints."""


class Measure(ABC):
    """One figure of a cell, or one family of them. Its docstring is its definition, as the report prints it.

    Attributes:
        tag: its name in rows and on the command line.
        direction: which way is better; `none` where it describes and does not judge.
        topic: one of `TOPICS`: where it stands in a report.
        source: the step of the module that defines it.
        needs: the ledger's columns that it is computed from.
        variants: what the members of a family are, where it is one.
        members: those that there are in every cell.
    """

    tag: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    direction: ClassVar[Direction]
    topic: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    variants: ClassVar[str | None] = None
    members: ClassVar[tuple[str, ...]] = ()
    definition: ClassVar[str]

    @abstractmethod
    def compute(self, view: "CellView") -> Value | list[Value]:
        """Its value, or one of each member.

        Raises:
            UnmeasuredError: with the reason, where the ledger cannot give it.
        """

    def values(self, view: "CellView") -> list[Value]:
        """Like `compute`, always a list, and a null value with the reason where the ledger cannot give it."""
        try:
            found = self.compute(view)
        except UnmeasuredError as why:
            return self.nothing(str(why))
        return found if isinstance(found, list) else [found]

    def nothing(self, reason: str, **fields: Any) -> list[Value]:
        """No value of any member that there should be, and why."""
        return [self.none(reason, variant=member, **fields) for member in self.members or ("",)]

    @property
    def evidence(self) -> str:
        """The ledger's columns behind it, in one line."""
        return ", ".join(self.needs)

    def value(self, value: float, n: int, **fields: Any) -> Value:
        """A value that rests on `n` items."""
        return Value(self.tag, float(value), **{"unit": self.unit, "evidence": self.evidence} | fields, n=int(n))

    def ratio(self, numerator: float, denominator: float, n: int, **fields: Any) -> Value:
        """A rate or a share, with both of its counts; no value where there is nothing to divide by."""
        if denominator == 0:
            fields.setdefault("reason", f"there is nothing to divide by in the window ({self.evidence})")
            return self.none(**fields)
        counts = {"numerator": float(numerator), "denominator": float(denominator)}
        return self.value(numerator / denominator, n, **counts | fields)

    def none(self, reason: str, **fields: Any) -> Value:
        """No value, and why."""
        return Value(self.tag, None, **{"unit": self.unit, "evidence": self.evidence} | fields, n=0, reason=reason)


REGISTERED: dict[str, type[Measure]] = {}
"""By tag, in the order of definition; `harness.measure.api.catalogue` sorts them."""

Kind = TypeVar("Kind", bound=type[Measure])


def figure(cls: Kind) -> Kind:
    """Register a measure under its tag.

    Raises:
        ValueError: the tag is taken, it has no topic of `TOPICS`, or no docstring to define it.
    """
    if cls.tag in REGISTERED or cls.topic not in TOPICS or not cls.__doc__:
        raise ValueError(f"measure {cls.tag}: its tag is taken, it has no topic, or no definition")
    cls.definition = inspect.cleandoc(cls.__doc__).replace("\n", " ")
    REGISTERED[cls.tag] = cls
    return cls
