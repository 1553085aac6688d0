"""Times of a step and of its parts [12.1.5]."""

from collections.abc import Iterator

from harness.audit.quantities import Case
from harness.audit.rule import Breach, Register

register = Register()
TOLERANCE = 0.005
"""Of the step: what rounding and the clock's own cost may add up to."""


@register.rule("impossible", "a stage within a step takes no longer than the step", "module 12.1.5")
def stage_exceeds_step(case: Case) -> Iterator[Breach]:
    """A stage that runs in the trainer's step, or beside it for that step, against the step."""
    step = case.one("step_seconds")
    if step is None:
        return
    for stage in (*case.of("stage_seconds"), *case.of("concurrent_seconds"), *case.of("wait_seconds")):
        if stage.value > step.value * (1 + TOLERANCE):
            yield Breach(
                stage.where,
                f"{stage.part or stage.where.key} {stage.value:g} s in a step of {step.value:g} s",
                "the two were averaged over different steps, or the stage is summed over processes",
            )


@register.rule("contradiction", "stages that follow one another add up to no more than their step", "module 12.1.5")
def parts_exceed_step(case: Case) -> Iterator[Breach]:
    """The sum of the stages that the trainer goes through one after another."""
    step, parts = case.one("step_seconds"), [*case.of("stage_seconds"), *case.of("wait_seconds")]
    if step is None or len(parts) < 2 or any(part.value > step.value for part in parts):
        return
    total = sum(part.value for part in parts)
    if total > step.value * (1 + TOLERANCE):
        named = " + ".join(f"{part.part or part.where.key} {part.value:g}" for part in parts)
        yield Breach(
            step.where,
            f"{named} = {total:.6g} s, {total - step.value:.3g} s more than the step's {step.value:g} s",
            "some of the stages overlap, or the columns are means over different steps",
        )
