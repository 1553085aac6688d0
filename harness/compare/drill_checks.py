"""What a continuation owes, one check each [12.5.3]: a result and its evidence in words."""

from collections.abc import Callable

from harness.compare.drill_evidence import Evidence, Result, batch_of, rows_of, short, some
from harness.measure.figures.recovery import state_of
from harness.measure.figures.restart_change import METRICS, change_at
from harness.measure.restarts import faults_of

OPTIMIZER, QUEUE, VERIFIER = "optimizer", "queue", "verifier"
KILLED = "killed_on_purpose"
"""The kind of fault by which the harness says what it killed from outside."""
NOTHING_RESTORED = "no attempt went on from an earlier one"
NO_TWIN = "there is no undisturbed run to hold it against"
WAS_OVER = "the checkpoint was that of the run's last optimizer step: no step was left to take"
BEGAN_AGAIN = "there was no whole checkpoint: the run began again from its first step, and nothing before it was kept"


def _happened(evidence: Evidence) -> tuple[Result, str]:
    planned = len(evidence.fault["faults"]) + sum(kill.get("times", 1) for kill in evidence.fault["kills"])
    killed = [fault["detail"] for fault in faults_of(evidence.ledger, KILLED)]
    acted = evidence.row["faults_acted"] + len(killed)
    died = [f"attempt {one['attempt']}: {one['reason']}" for one in evidence.row["attempts"] if one["status"] != "ok"]
    said = f"{acted} of {planned} acted" + "".join(f"; {words}" for words in [*killed, *died])
    return ("holds" if acted == planned else "broken"), said


def _came_back(evidence: Evidence) -> tuple[Result, str]:
    ended = evidence.row["attempts"][-1]
    said = f"attempt {ended['attempt']} ended {evidence.row['status']}"
    if evidence.row["status"] == "ok":
        return "holds", said
    return "broken", f"{said}: {evidence.row['reason']}"


def _lawful(evidence: Evidence) -> tuple[Result, str]:
    if evidence.violations:
        return "broken", f"violations: {len(evidence.violations)}: {some(evidence.violations)}"
    return "holds", "rlaxes check finds nothing"


def _restored(evidence: Evidence) -> tuple[Result, str]:
    if not evidence.resumes:
        return "does not apply", NOTHING_RESTORED
    if not any(resume.items for resume in evidence.resumes):
        return "does not apply", BEGAN_AGAIN
    declared = {QUEUE} if evidence.checkpoint.get("queue") == "discard" else set()
    items = [(name, state_of(item)) for resume in evidence.resumes for name, item in resume.items.items()]
    wrong = [f"{name} {state}" for name, state in items if state != "restored" and name not in declared]
    if wrong:
        return "broken", ", ".join(wrong)
    return "holds", f"{len(items)} items" + (f"; the {QUEUE} was discarded, as declared" if declared else "")


def _not_cold(evidence: Evidence) -> tuple[Result, str]:
    found = [resume.items[OPTIMIZER] for resume in evidence.resumes if OPTIMIZER in resume.items]
    if not found:
        return "does not apply", NOTHING_RESTORED if not evidence.resumes else "no optimizer state was kept"
    cold = [item for item in found if item["state"] != "restored" or item["saved"] != item["found"]]
    if cold:
        return "broken", f"saved {short(cold[0]['saved'])}, found {short(cold[0]['found'])}: {cold[0]['evidence']}"
    return "holds", f"digest {short(found[-1]['found'])}, as saved"


def _version(evidence: Evidence) -> tuple[Result, str]:
    gap = evidence.find("policy_version_gap")
    if not evidence.resumes or gap is None:
        return "does not apply", NOTHING_RESTORED
    versions = ", ".join(f"goes on from {r.policy_version} at step {r.step}" for r in evidence.resumes)
    return ("broken" if gap.value else "holds"), f"{versions}; gap {gap.value:g}"


def _prompts(evidence: Evidence) -> tuple[Result, str]:
    if evidence.twin is None:
        return "unknown", NO_TWIN
    query = "select distinct group_id from rollouts"
    ours, theirs = ({row[0] for row in rows_of(ledger, query)} for ledger in (evidence.ledger, evidence.twin))
    last = min(max((batch_of(group) for group in groups), default=-1) for groups in (ours, theirs))
    skipped = sorted(g for g in theirs - ours if batch_of(g) <= last and f"b{batch_of(g)}" not in evidence.lost_batches)
    repeated = sorted(group for group in ours - theirs if batch_of(group) <= last)
    if skipped or repeated:
        return "broken", f"skipped: {some(skipped) or 'none'}; out of turn: {some(repeated) or 'none'}"
    return "holds", f"those of the undisturbed run, batch for batch, as far as batch {last}"


def _samples(evidence: Evidence) -> tuple[Result, str]:
    apart = evidence.divergence
    if apart is None:
        return "unknown", NO_TWIN
    if apart.same_samples:
        return "holds", "the same multiset of sample ids as the undisturbed run"
    missing = set(apart.missing)
    dropped = evidence.rows("select sample_id from fates where fate <> 'trained'")
    counted = {row[0] for row in dropped} | {one for one in missing if f"b{batch_of(one)}" in evidence.lost_batches}
    lost, last = sorted(missing - counted), max(map(batch_of, missing), default=None)
    early = sorted(one for one in apart.extra if last is None or batch_of(one) <= last)
    said = f"{len(apart.missing)} fewer, {len(missing & counted)} of them counted as lost; {len(apart.extra)} others"
    if lost or early:
        return "broken", f"{said}; not accounted for: {some(lost + early)}"
    return "holds", said


def _once(evidence: Evidence) -> tuple[Result, str]:
    rows = evidence.rows("select sample_id from trained group by sample_id, epoch having count(*) > 1 order by all")
    if rows:
        return "broken", f"trained twice: {some([row[0] for row in rows])}"
    return "holds", "no sample was trained twice in an epoch of the history"


def _whole(evidence: Evidence) -> tuple[Result, str]:
    rows = evidence.rows("""select t.sample_id, max(abs(t.advantage))
                            from trained t left join rollouts r using (sample_id)
                            where r.sample_id is null or r.reward_total is null group by 1 order by 1""")
    if rows:
        unmoved = all(advantage == 0 for _, advantage in rows)
        how = "; with an advantage of 0, so that they count in the loss's mean alone" if unmoved else ""
        return "broken", f"trained without a known reward: {some([row[0] for row in rows])}{how}"
    (refused,) = evidence.rows("select count(distinct \"where\") from faults where kind = 'batch_refused'")
    return "holds", f"every trained sample has a verified reward; {refused[0]} batches were refused whole"


def _survived(evidence: Evidence) -> tuple[Result, str]:
    if not any(fault["role"].startswith(VERIFIER) for fault in evidence.fault["faults"]):
        return "does not apply", "nothing was done to the verifier"
    lost = len(faults_of(evidence.ledger, "verifier_error"))
    first = evidence.row["attempts"][0]
    if first["status"] != "ok":
        return "broken", f"the framework died of it: {first['reason']}"
    return "holds", f"samples that got no verdict: {lost}; the run went on without them"


def _control(evidence: Evidence) -> tuple[Result, str]:
    if not evidence.resumes:
        return "does not apply", NOTHING_RESTORED
    step = evidence.resumes[-1].step
    after = evidence.rows(f"select step, loss, grad_norm, records, groups from updates where step >= {step} order by 1")
    if not after and _was_over(evidence):
        return "does not apply", WAS_OVER
    if not after:
        return "broken", "no optimizer step followed the restart"
    step, loss, norm, records, groups = after[0]
    first = min(resume.step for resume in evidence.resumes)
    bad = evidence.rows(
        f"select step from updates where step >= {first} and not (isfinite(loss) and isfinite(grad_norm))"
    )
    if bad:
        return "broken", f"loss or gradient norm not finite in steps {some([row[0] for row in bad])}"
    return "holds", f"step {step}: loss {loss:.4g}, gradient norm {norm:.4g}, {records} records of {groups} groups"


def _was_over(evidence: Evidence) -> bool:
    """Whether the last restart found every optimizer step of the run taken."""
    planned: int = evidence.view.context.task["steps"]
    return evidence.row["status"] == "ok" and evidence.resumes[-1].step >= planned


def _components(evidence: Evidence) -> tuple[Result, str]:
    names = ("tokenizer_hash", "template_hash", "verifier_version", "behavior_logprob_kind")
    both = "(select * from rollouts union all select * from lost_rollouts)"
    counts = evidence.rows(f"select {', '.join(f'count(distinct {name})' for name in names)} from {both}")[0]
    several = [name for name, count in zip(names, counts, strict=True) if count > 1]
    if several:
        return "broken", f"several values across the attempts: {', '.join(several)}"
    return "holds", "one tokenizer, template, verifier and kind of log-probs in all attempts"


def _ranges(evidence: Evidence) -> tuple[Result, str]:
    if not any(resume.kept for resume in evidence.resumes):
        return "does not apply", "nothing before the restart was kept" if evidence.resumes else NOTHING_RESTORED
    outside, said = list[str](), list[str]()
    for step in sorted({resume.step for resume in evidence.resumes if resume.kept}):
        wrong, found = _changes(evidence, step)
        said = found or said
        outside += [f"step {step}: {words}" for words in wrong]
    if not said and _was_over(evidence):
        return "does not apply", WAS_OVER
    if not said:
        return "unknown", "no metric is known on both sides of the restart"
    return ("broken" if outside else "holds"), "; ".join(outside + said)


def _changes(evidence: Evidence, step: int) -> tuple[list[str], list[str]]:
    """Across the restart at a step: the metrics that changed by more than is allowed, and every change, in words."""
    outside, said = [], []
    for metric, (low, high) in evidence.fault["allowed"].items():
        change = change_at(evidence.view, step, metric)
        normal = change_at(evidence.undisturbed, step, metric) if evidence.undisturbed is not None else None
        if change is None:
            continue
        excess = _beyond(change, normal, as_ratio=METRICS[metric][2])
        said.append(f"{metric} {change:.3g}" + (f" ({normal:.3g} undisturbed)" if normal is not None else ""))
        if not low <= excess <= high:
            outside.append(f"{metric} outside [{low:g}, {high:g}]")
    return outside, said


def _beyond(change: float, normal: float | None, *, as_ratio: bool) -> float:
    """What the change is beyond that of the undisturbed run across the same step, where there is one: training goes on,
    and its trend is not the restart's doing."""
    if not normal:
        return change
    return change / normal if as_ratio else change - normal


CHECKS: dict[str, Callable[[Evidence], tuple[Result, str]]] = {
    "the fault happened": _happened,
    "the run came to its end": _came_back,
    "ledger lawful": _lawful,
    "checkpoint restored": _restored,
    "optimizer not cold": _not_cold,
    "policy version continuous": _version,
    "prompts neither repeated nor skipped": _prompts,
    "trained samples accounted for": _samples,
    "no sample trained twice": _once,
    "no partial batch trained": _whole,
    "a lost verdict ends no run": _survived,
    "control batch sound": _control,
    "components unchanged": _components,
    "metrics within range": _ranges,
}
"""Every check by the name that a report gives it, in the order in which they are read."""
