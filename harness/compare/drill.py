"""The verdict of a drill: whether what came after a fault is the same experiment, check by check [12.5.3]."""

from dataclasses import asdict, dataclass
from typing import Any

from harness.compare.divergence import Divergence
from harness.compare.drill_checks import CHECKS, NO_TWIN
from harness.compare.drill_evidence import Check, Evidence, Item
from harness.measure.figures.recovery import state_of

NOT_RUN = "not_run"
COSTS = (
    ("restarts", "restarts"),
    ("processes_replaced", "processes replaced"),
    ("updates_lost", "optimizer steps done again"),
    ("rollouts_lost", "rollouts taken back"),
    ("generations_lost", "generations that never arrived"),
    ("faults[verifier_error]", "samples without a verdict"),
    ("faults[publication_refused]", "publications refused"),
    ("checkpoint_failures", "checkpoints that failed"),
    ("checkpoint_age_at_death_seconds", "work since the newest checkpoint"),
    ("restore_seconds", "restoring took"),
    ("first_good_step_seconds", "from death to the first good step"),
)


@dataclass(frozen=True)
class DrillVerdict:
    """What a drill showed.

    Attributes:
        continues: whether the run after the fault is the same experiment; None where that cannot be told.
        attempts: each with how it ended.
        cost: what the fault took, in one line.
        divergence: from the undisturbed cell; None where there is none.
    """

    cell_id: str
    adapter: str
    layout: str
    track: str
    repeat: int
    fault: str
    twin: str
    status: str
    attempts: list[dict[str, Any]]
    continues: bool | None
    checks: list[Check]
    items: list[Item]
    cost: str
    divergence: Divergence | None

    @property
    def word(self) -> str:
        """The verdict in a few words."""
        if self.status == NOT_RUN:
            return f"not run: {self.checks[0].said}"
        broken = [check.name for check in self.checks if check.result == "broken"]
        unknown = [check.name for check in self.checks if check.result == "unknown"]
        if broken:
            return f"not the same experiment: {', '.join(broken)}"
        return f"cannot be told: {', '.join(unknown)}" if unknown else "continues the same experiment"

    @property
    def apart(self) -> str:
        """Where its history first differs from the undisturbed one, in words."""
        if self.divergence is None:
            return NO_TWIN
        first, parameters = self.divergence.first, self.divergence.parameters_equal
        final = {True: "equal", False: "different", None: "unknown"}[parameters]
        if first is None:
            return (
                f"the undisturbed run's history, bit for bit ({self.divergence.steps_alike} steps); parameters {final}"
            )
        values = f"{first.left} undisturbed, {first.right} drilled"
        return f"first differs in step {first.step}, {first.aspect} of {first.sample_id}: {values}; parameters {final}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        apart = self.divergence.as_dict() if self.divergence else None
        return asdict(self) | {"word": self.word, "apart": self.apart, "divergence": apart}


def judge_drill(evidence: Evidence) -> DrillVerdict:
    """Judge a drilled cell by its ledger and that of the undisturbed one."""
    checks = [Check(name, *check(evidence)) for name, check in CHECKS.items()]
    results = {check.result for check in checks}
    items = [
        Item(resume.attempt, name, state_of(item), item["saved"], item["found"], item["evidence"])
        for resume in evidence.resumes
        for name, item in resume.items.items()
    ]
    return DrillVerdict(
        **_place(evidence.row),
        continues=False if "broken" in results else None if "unknown" in results else True,
        checks=checks,
        items=items,
        cost=_cost(evidence),
        divergence=evidence.divergence,
    )


def unjudged(row: dict[str, Any], reason: str) -> DrillVerdict:
    """The verdict of a drilled cell that left nothing to judge it by."""
    checks = [Check("anything was recorded", "unknown", reason)]
    return DrillVerdict(**_place(row), continues=None, checks=checks, items=[], cost="unknown", divergence=None)


def _place(row: dict[str, Any]) -> dict[str, Any]:
    keys = ("cell_id", "adapter", "layout", "track", "repeat", "fault", "twin", "status", "attempts")
    return {key: row[key] for key in keys}


def _cost(evidence: Evidence) -> str:
    """The figures of what was lost, in words."""
    said = []
    for tag, words in COSTS:
        value = evidence.find(tag)
        if value is not None and value.value:
            said.append(f"{words}: {value.value:.3g}{' s' if value.unit == 's' else ''}")
    return ", ".join(said) or "nothing was lost"
