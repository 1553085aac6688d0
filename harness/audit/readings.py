"""What the numbers of one case add up to: figures that follow from it, not findings about it [12.1.5, 12.3.5]."""

from harness.audit.quantities import Case

OVERLAPPING = ("async", "one_step_off", "1-off", "8-off", "overlap")


def readings(case: Case) -> dict[str, float]:
    """By name, only those that the case has the numbers for.

    - `sequential_seconds`: the sum of the stages that follow one another, the trainer's wait included.
    - `unnamed_seconds`, `unnamed_share`: what of the step is in none of them.
    - `pipeline_seconds`: max(G, T) with G a rollout that runs beside the trainer, T the trainer's own stages.
    - `pipeline_rest_seconds`: the step less that: what does not overlap.
    - `trainer_idle_share`: the wait over the step.
    """
    whole = case.one("step_seconds") or case.one("run_seconds")
    stages = sum(part.value for part in case.of("stage_seconds"))
    wait = sum(part.value for part in case.of("wait_seconds"))
    out: dict[str, float] = {}
    if stages or wait:
        out["sequential_seconds"] = stages + wait
    if whole is not None and whole.value and (stages or wait):
        out["unnamed_seconds"] = whole.value - stages - wait
        out["unnamed_share"] = out["unnamed_seconds"] / whole.value
    if whole is not None and wait:
        out["trainer_idle_share"] = wait / whole.value
    beside = case.one("concurrent_seconds")
    if beside is not None and whole is not None and _overlaps(case):
        out["pipeline_seconds"] = max(beside.value, stages)
        out["pipeline_rest_seconds"] = whole.value - out["pipeline_seconds"]
    return out


def _overlaps(case: Case) -> bool:
    mode = case.facts.get("mode", case.facts.get("policy", "")).lower()
    return any(word in mode for word in OVERLAPPING)
