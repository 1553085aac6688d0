"""`rlaxes plan pipeline`, `queue` and `checkpoint`: the closed formulas on numbers that were measured."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.commands.plan_words import Answer, read_words, seconds
from harness.errors import UserError
from harness.simulate.reading import number
from harness.theory import checkpoint as checkpoints
from harness.theory import pipeline, queue

ROLLOUT, TRAIN = ("rollout", "reward"), ("logp", "train", "sync")
"""The terms of T_seq [12.1.5] that make up G and T."""


def plan_pipeline(given: Sequence[str]) -> Answer:
    """Period, speed-up and pools of a two-stage loop, the use that stragglers leave, and the critical path.

    Raises:
        UserError: names the setting that is wrong.
    """
    known = ("G", "T", *ROLLOUT, *TRAIN, "exposed", "batches", "times", "stages", "devices", "G_devices", "T_devices")
    found = read_words(given, known)
    answer = Answer()
    if any(key in found for key in ("G", "T", *ROLLOUT, *TRAIN)):
        _two_stages(answer, found)
    if "times" in found:
        _stragglers(answer, found["times"])
    if "stages" in found:
        _critical(answer, found["stages"])
    if not answer.rows:
        raise UserError("which times? Give G=90 T=10, or rollout=, reward=, logp=, train=, sync=; times=[...]; stages=")
    return answer


def _two_stages(answer: Answer, found: Mapping[str, Any]) -> None:
    rollout, train = _stage(found, "G", ROLLOUT), _stage(found, "T", TRAIN)
    if not rollout + train:
        raise UserError("G and T are both 0: there is no period")
    exposed, batches = (
        number(found.get("exposed", 0), "exposed"),
        number(found.get("batches", 1), "batches", whole=True),
    )
    period = pipeline.exposed_period(rollout, train, exposed)
    answer.add("G", rollout, seconds(rollout), "rollout + reward")
    answer.add("T", train, seconds(train), "logp + train + sync")
    sequential = pipeline.sequential_period(rollout, train)
    answer.add("C_seq", sequential, seconds(sequential), "G + T")
    answer.add("C_pipe", period, seconds(period), "max(G, T)" + (" + s" if exposed else ""))
    speedup = sequential / period
    answer.add("speedup", speedup, f"{speedup:.3g}x", "C_seq / C_pipe; at most 2 from overlap alone")
    whole = pipeline.pipeline_total(rollout, train, batches) + batches * exposed
    answer.add("T_n", whole, seconds(whole), f"G + T + (n - 1) max(G, T), n = {batches}")
    idle = {"rollout_idle": 1 - rollout / period, "trainer_idle": 1 - train / period}
    for name, share in idle.items():
        answer.add(name, share, f"{share:.1%}", "of the overlapped period")
    if speedup < 1:
        answer.warnings.append("overlap makes it slower: what it exposes is more than what it hides")
    if "devices" in found:
        _pools(answer, found, rollout, train)


def _stage(found: Mapping[str, Any], whole: str, parts: Sequence[str]) -> float:
    terms = [part for part in parts if part in found]
    if whole in found and terms:
        raise UserError(f"give {whole} or its terms {', '.join(terms)}, not both")
    if whole in found:
        return float(number(found[whole], whole))
    return sum(float(number(found[part], part)) for part in terms)


def _pools(answer: Answer, found: Mapping[str, Any], rollout: float, train: float) -> None:
    devices = number(found["devices"], "devices", whole=True)
    own = [number(found.get(key, devices), key, whole=True) for key in ("G_devices", "T_devices")]
    try:
        split = pipeline.best_split(rollout * own[0], train * own[1], devices)
    except ValueError as error:
        raise UserError(f"devices={devices}: {error}") from error
    shown = f"{split.rollout} + {split.train}, period {seconds(split.period)}"
    answer.add("rollout_devices", split.rollout, shown, "rollout + training, from measured device-seconds")
    answer.add("split_period", split.period, seconds(split.period), "if both stages scale linearly")
    answer.warnings.append("linear scaling is an assumption: measure both stages again at that split")


def _stragglers(answer: Answer, times: Any) -> None:
    if not isinstance(times, list) or not times:
        raise UserError("times: give a list, as times=[4,4,5,20]")
    values = [float(number(value, "times")) for value in times]
    try:
        use = pipeline.straggler_utilisation(values)
    except ValueError as error:
        raise UserError(f"times={times}: {error}") from error
    reserved = len(values) * max(values)
    answer.add("work", sum(values), seconds(sum(values)), "sum T_i")
    answer.add("reserved", reserved, seconds(reserved), "n max T_i")
    answer.add("U", use, f"{sum(values):g}/{reserved:g} = {use:.3f}", "sum T_i / (n max T_i)")


def _critical(answer: Answer, given: Any) -> None:
    if not isinstance(given, dict):
        raise UserError("stages: give {rollout: {seconds: 70}, train: {seconds: 30, after: [rollout]}}")
    stages = {}
    for name, stage in given.items():
        if not isinstance(stage, dict) or "seconds" not in stage or set(stage) - {"seconds", "after"}:
            raise UserError(f"stages.{name}: give seconds, and after with the stages before it")
        length = float(number(stage["seconds"], f"stages.{name}.seconds"))
        stages[str(name)] = pipeline.Stage(length, tuple(map(str, stage.get("after") or ())))
    try:
        chain, length = pipeline.critical_path(stages)
    except ValueError as error:
        raise UserError(f"stages: {error}") from error
    work = sum(stage.seconds for stage in stages.values())
    answer.add("total_work", work, seconds(work), "all stages")
    answer.add("critical_path", length, seconds(length), " -> ".join(chain))
    answer.more["chain"] = chain


def plan_queue(given: Sequence[str]) -> Answer:
    """Is the queue between rollout and trainer stable, and what would its depth cost in lag?

    Raises:
        UserError: names the setting that is wrong.
    """
    found = read_words(given, ("arrival", "service", "depth", "limit", "batch", "updates", "seconds"))
    if missing := [key for key in ("arrival", "service") if key not in found]:
        raise UserError(f"{missing[0]} is not given: both rates in one unit a second, e.g. tokens")
    arrival, service = (float(number(found[key], key)) for key in ("arrival", "service"))
    if not service:
        raise UserError("service=0: nothing is ever consumed")
    depth = float(number(found.get("depth", 0), "depth"))
    rate, use = queue.growth(arrival, service), queue.utilisation(arrival, service)
    answer = Answer()
    answer.add("utilisation", use, f"{use:.3f}", "lambda / mu")
    answer.add("growth", rate, f"{rate:,.4g} a second", "lambda - mu, where it is above 0")
    starving = queue.starving_share(arrival, service)
    answer.add("trainer_starving", starving, f"{starving:.1%}", "1 - lambda / mu, where it is above 0")
    if use >= 1:
        answer.warnings.append(
            f"unstable: {use:.3f} of what it serves arrives, so it grows by {rate:,.4g} a second without end"
            if rate
            else "unstable: as much arrives as is served, so that every delay stays"
        )
    if "seconds" in found:
        after = depth + rate * number(found["seconds"], "seconds")
        answer.add("depth_then", after, f"{after:,.0f}", f"after {seconds(found['seconds'])}, with no limit")
    if "limit" in found:
        _limit(answer, found, (depth, arrival, service))
    return answer


def _limit(answer: Answer, found: Mapping[str, Any], at: tuple[float, float, float]) -> None:
    limit = float(number(found["limit"], "limit"))
    reached = queue.seconds_until(at[0], limit, at[1], at[2])
    shown = seconds(reached) if math.isfinite(reached) else "never"
    answer.add("limit_reached", reached if math.isfinite(reached) else None, shown, "(limit - depth) / growth")
    if "batch" in found:
        batch = float(number(found["batch"], "batch"))
        if not batch:
            raise UserError("batch=0: a batch holds something")
        lag = queue.lag_of_depth(limit, batch, number(found.get("updates", 1), "updates", whole=True))
        answer.add("lag_at_limit", lag, f"{lag:.3g} updates", "depth / batch x updates a batch")


def plan_checkpoint(given: Sequence[str]) -> Answer:
    """How often to write a checkpoint, and what that and the lost work cost.

    Raises:
        UserError: names the setting that is wrong.
    """
    found = read_words(given, ("write", "between_failures", "device_hours", "devices", "interval"))
    if "write" not in found:
        raise UserError("write is not given: the seconds that a checkpoint takes")
    write = float(number(found["write"], "write"))
    between = _between_failures(found)
    best = checkpoints.best_interval(write, between)
    interval = float(number(found["interval"], "interval")) if "interval" in found else best
    if not write or not interval:
        raise UserError("write and interval have to be above 0")
    answer = Answer()
    answer.add("M", between, seconds(between), "mean time between failures of the job")
    answer.add("I*", best, seconds(best), "sqrt(2 C M)")
    for name, value in {"H(I*)": best, **({"H(I)": interval} if interval != best else {})}.items():
        _waste(answer, name, value, write, between)
    return answer


def _waste(answer: Answer, name: str, interval: float, write: float, between: float) -> None:
    waste = checkpoints.checkpoint_overhead(interval, write, between)
    answer.add(name, waste, f"{waste:.2%}", f"C/I + I/(2M) at I = {seconds(interval)}")
    if beyond := checkpoints.beyond_small(interval, write, between):
        answer.warnings.append(f"{name}: the small-waste assumption ends here: {', '.join(beyond)}")


def _between_failures(found: Mapping[str, Any]) -> float:
    if ("between_failures" in found) == ("device_hours" in found):
        raise UserError("give between_failures in seconds, or device_hours between failures of one device, and devices")
    if "between_failures" in found:
        between = float(number(found["between_failures"], "between_failures"))
    else:
        devices = number(found.get("devices", 1), "devices", whole=True)
        if not devices:
            raise UserError("devices=0: there is no job")
        between = checkpoints.job_between_failures(3600 * number(found["device_hours"], "device_hours"), devices)
    if not between:
        raise UserError("the mean time between failures has to be above 0")
    return between
