"""Times of a step and of its parts [12.1.5]."""

from collections.abc import Iterator

from harness.audit.quantities import Case, Observation
from harness.audit.rule import Breach, Register

register = Register()
TOLERANCE = 0.005
"""Of the step: what rounding and the clock's own cost may add up to."""
ROUGH = 0.02
"""Of a run: what a mean over its steps may lie off by."""
OUTSIDE = 1 / 3


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


@register.rule("contradiction", "a run takes at least the time of its steps", "definition")
def steps_exceed_run(case: Case) -> Iterator[Breach]:
    """Steps x seconds of one against the seconds of the run."""
    for run, inside, count in _run(case):
        if inside > run.value * (1 + ROUGH):
            told = f"{count:g} steps of {inside / count:.6g} s make {inside:.6g} s, the run took {run.value:.6g} s"
            yield Breach(run.where, told, "the time of a step is a mean over slower steps, or of another run")


@register.rule("suspect", "what a run does, it does in its steps", "NeMo-RL#3955")
def time_outside_steps(case: Case) -> Iterator[Breach]:
    """Over a third of the run in none of its steps: a first fill of the buffer, validation, start-up, waiting."""
    for run, inside, count in _run(case):
        if inside < run.value * (1 - OUTSIDE):
            told = (
                f"{count:g} steps make {inside:.6g} s of a run of {run.value:.6g} s: {run.value - inside:.6g} s in none"
            )
            yield Breach(run.where, told, "that time fell before the first step, between steps, or into validation")


def _run(case: Case) -> Iterator[tuple[Observation, float, float]]:
    """The seconds of a run, those of its steps, and their number."""
    run, steps, step = case.one("run_seconds"), case.one("steps"), case.one("step_seconds")
    if run is not None and steps is not None and step is not None and steps.value and run.value:
        yield run, steps.value * step.value, steps.value
