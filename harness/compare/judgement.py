"""What a comparison says of one measure: a state, the effect with its interval, and what could have been found."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from harness.measure.values import Direction, json_number

JudgedState = Literal["better", "worse", "no change", "cannot tell", "not comparable", "failed", "not run"]
"""Apart from `harness.compare.rows.State`, which says whether a figure was measured at all."""
STATES: tuple[JudgedState, ...] = get_args(JudgedState)
_NUMBERS = ("effect", "low", "high", "p", "p_adjusted", "margin", "detectable")


@dataclass(frozen=True)
class Explanation:
    """The stage whose seconds moved most the way that those of a step, or of a part of it, did.

    Attributes:
        stage: its name in the ledger.
        seconds: by how much its seconds an optimizer step grew.
        share: `seconds` over the growth of what was judged; over 1 where other stages or overlap made up for it.
    """

    stage: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Judgement:
    """One measure of one system held against its baseline, on one layout and track.

    Attributes:
        adapter, baseline: the labels of the two.
        measure, variant: as in a row of the report.
        effect: subject over baseline, the geometric mean over repeats of the ratio of run totals; None where there is
            nothing to divide. `low` and `high` are its 95 % interval (Student's t on the logarithms).
        p: two-sided, that the ratio is 1; `p_adjusted` after Holm over the gates of the comparison.
        margin: the relative change up to which a difference counts as none.
        detectable: the smallest relative change that would be found with a power of 80 % by this very rule, at the
            level at which Holm's procedure tests the figure first.
        pairs: repeats that count: pairs, or those of the smaller side where they are not paired.
        gating: whether a verdict counts in the exit code. Only measures named in advance (`harness.compare.gates`) are
            judged, so it is true of all that this version writes.
        reason: why the state is what it is, or what to know beside it.
        cause: of a subject that failed: system, infrastructure or harness; None where it did not, or its baseline did.
        paired: whether the test is of pairs; else Welch's.
        explained_by: of a step, or a part of it, that got slower or faster: which stage.
    """

    adapter: str
    baseline: str
    layout: str
    track: str
    measure: str
    variant: str
    unit: str
    direction: Direction
    state: JudgedState
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    margin: float | None = None
    detectable: float | None = None
    pairs: int = 0
    gating: bool = True
    reason: str = ""
    cause: str | None = None
    paired: bool = True
    explained_by: Explanation | None = None

    @property
    def name(self) -> str:
        """Tag and variant in one word, e.g. `t_seq_part_seconds[train]`."""
        return f"{self.measure}[{self.variant}]" if self.variant else self.measure

    def as_dict(self) -> dict[str, Any]:
        """For JSON; infinities are strings."""
        return asdict(self) | {name: json_number(getattr(self, name)) for name in _NUMBERS}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """A judgement read back; what an older one does not tell is as if nothing was known of it."""
        given = {field.name: content[field.name] for field in fields(cls) if field.name in content}
        numbers = {name: None if given[name] is None else float(given[name]) for name in _NUMBERS}
        told = given.get("explained_by")
        return cls(**given | numbers | {"explained_by": Explanation(**told) if told else None})
