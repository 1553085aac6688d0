"""The figures of a run that was recorded elsewhere: those that its framework wrote by our definition, and no other.

Every figure of the catalogue has a value or the reason why it has none. A value is the framework's word, and says so.
"""

from collections.abc import Sequence

import duckdb

from harness.contract import CellLedger, NativeSeries
from harness.measure.api import catalogue
from harness.measure.measure import Measure
from harness.measure.self_report import NAME
from harness.measure.values import Value

MEAN, MEDIAN, SUM, LARGEST = "mean", "median", "sum", "largest"
REDUCED = {
    "loss": MEAN,
    "grad_norm": MEAN,
    "grad_norm_p50": MEDIAN,
    "completion_length": MEAN,
    "completion_length_max": LARGEST,
    "reward": MEAN,
    "truncated_share": MEAN,
    "degenerate_fraction": MEAN,
    "step_seconds": MEAN,
    "generated_tokens": SUM,
    "stale_rejected_records": SUM,
    "stale_rejected_tokens": SUM,
    "lag_max": LARGEST,
    "published_lag_max": LARGEST,
}
"""How what a framework wrote for each step makes the figure of a run. Each step counts once in a mean."""
ALSO = {"grad_norm": "grad_norm_p50"}
"""What else is by definition made from the numbers of a figure's steps."""
NOT_RECORDED = "the source does not record it"
AGREE = 2e-3
"""Two keys of one figure that differ by no more, relative to it, are the same number, printed once more."""

_OF_SERIES = """
    select count(*), count(distinct step), max(step) - min(step) + 1, count(*) filter (not isfinite(value)),
           avg(value) filter (isfinite(value)), median(value) filter (isfinite(value)),
           sum(value) filter (isfinite(value)), max(value) filter (isfinite(value))
    from native where key = $key and (step is null or step > $after)
"""
_WARMUP = """
    select max(step)
    from (select distinct step from native where key in (select unnest($keys)) order by step limit $n)
"""


def ingested_values(ledger: CellLedger, series: Sequence[NativeSeries], warmup_steps: int) -> list[Value]:
    """Every figure of the catalogue, in its order.

    Args:
        series: what the manifest says of the ledger's table `native`.
        warmup_steps: how many training steps to drop at the start; entries that name no step are all kept.
    """
    own = [one for one in series if one.same and one.trained]
    with duckdb.connect() as connection:
        connection.from_parquet(str(ledger.path("native"))).create_view("native")
        after = _last_of_warmup(connection, [one.stored for one in series if one.trained], warmup_steps)
        tags = [(one, tag) for one in own for tag in (one.measure, ALSO.get(one.measure or "")) if tag]
        found = [value for one, tag in tags if (value := _value(connection, one, tag, after))]
    return [value for kind in catalogue() for value in _of_kind(kind, found, series, warmup_steps)]


def _last_of_warmup(connection: duckdb.DuckDBPyConnection, keys: list[str], steps: int) -> int:
    if not steps:
        return -(2**62)
    (last,) = connection.execute(_WARMUP, {"keys": keys, "n": steps}).fetchall()[0]
    return -(2**62) if last is None else int(last)


def _of_kind(
    kind: type[Measure], found: Sequence[Value], series: Sequence[NativeSeries], warmup_steps: int
) -> list[Value]:
    """The values of one figure: as written, or none."""
    if kind.tag == "warmup_steps_dropped":
        return [kind().value(warmup_steps, warmup_steps)]
    values = [value for value in found if value.tag == kind.tag]
    variants = list(dict.fromkeys(value.variant for value in values))
    if not values:
        return kind().nothing(_why_not(kind, series))
    return [_one_of([value for value in values if value.variant == variant], kind) for variant in variants]


def _why_not(kind: type[Measure], series: Sequence[NativeSeries]) -> str:
    """Nothing there, or what resembles it and is another thing."""
    like = {one.key: one.differs_because for one in series if one.trained and _names(one, kind)}
    if not like:
        return NOT_RECORDED
    told = "; ".join(f"{key} is alike, but: {why}" for key, why in like.items() if why)
    return f"{NOT_RECORDED}: {told}" if told else NOT_RECORDED


def _names(one: NativeSeries, kind: type[Measure]) -> bool:
    named = NAME.fullmatch(one.measure or "")
    return bool(named and named["tag"] == kind.tag)


def _value(connection: duckdb.DuckDBPyConnection, one: NativeSeries, measure: str, after: int) -> Value | None:
    """A figure from a series that is that figure; None where the key map names no figure of the catalogue."""
    named = NAME.fullmatch(measure)
    kinds = [kind for kind in catalogue() if named and kind.tag == named["tag"]]
    if not named or not kinds:
        return None
    row = connection.execute(_OF_SERIES, {"key": one.stored, "after": after}).fetchone()
    assert row is not None
    said = dict(zip(("n", "steps", "span", "odd", MEAN, MEDIAN, SUM, LARGEST), row, strict=True))
    files = ", ".join(one.files)
    fields = {"variant": named["variant"] or "", "evidence": f"as the framework wrote it: {one.key}, {files}"}
    kind, how = kinds[0](), REDUCED.get(kinds[0].tag)
    if how is None:
        return kind.none(f"{one.key}: nothing says how its steps make one figure", **fields)
    if said[how] is None:
        return kind.none(f"{one.key} has no number in a step after the warm-up", **fields)
    if one.of == "last" and said["steps"] and said["span"] > said["steps"]:
        return kind.none(f"{one.key} speaks of {said['steps']} of {said['span']} steps only", **fields)
    reason = f"as the framework wrote it: {how} of {one.key} over {said['n']} entries of {files}"
    reason += f", {said['odd']} more are no number" if said["odd"] else ""
    return kind.value(said[how] * one.scale, said["n"] - said["odd"], reason=reason, written=True, **fields)


def _one_of(values: Sequence[Value], kind: type[Measure]) -> Value:
    """What several keys of one figure say, where they agree; that with the most entries speaks for all."""
    numbers = [value.value for value in values if value.value is not None]
    if not numbers:
        return values[0]
    if max(numbers) - min(numbers) > AGREE * max(map(abs, numbers)):
        told = ", ".join(f"{value.value:g} ({value.evidence})" for value in values if value.value is not None)
        return kind().none(f"its keys contradict each other: {told}", variant=values[0].variant)
    return max(values, key=lambda value: (value.value is not None, value.n))
