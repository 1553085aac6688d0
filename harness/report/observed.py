"""What a cell's ledger shows of the architecture: who ran where and when, what was published, what was recomputed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb

from harness.contract import TABLES
from harness.measure.spans import GENERATING
from harness.measure.view import CellView
from harness.report import format as fmt

TRAINING = ("forward_backward", "optimizer_step")
OVERLAP = 0.01
"""Generation and training that overlap in less of the window than this are said not to."""
FIRST_SAMPLES = 1000
Finding = tuple[str | None, str]
"""A value, or None; and the reason why there is none, empty where there is one."""


@dataclass(frozen=True)
class Evidence:
    """A cell's ledger, for queries and as the measures see it."""

    view: CellView
    connection: duckdb.DuckDBPyConnection

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query over the tables gives."""
        return self.connection.execute(query).fetchall()

    def one(self, query: str) -> Any:
        """The first value of the first row, or None."""
        rows = self.rows(query)
        return rows[0][0] if rows else None

    def note(self, key: str) -> Any:
        """A note of the cell's manifest, or None."""
        return self.view.notes.get(key)


@dataclass(frozen=True)
class Observation:
    """The value of one axis in one layout, with the ledger columns that show it."""

    axis: str
    layout: str
    value: str | None
    evidence: str
    reason: str | None


def observe(view: CellView, layout: str) -> list[Observation]:
    """Every axis that a ledger can speak of."""
    with duckdb.connect() as connection:
        for table in TABLES:
            connection.from_parquet(str(view.tables.ledger.path(table))).create_view(table)
        found, seen = [], Evidence(view, connection)
        for axis, (evidence, look) in LOOKS.items():
            value, reason = look(seen)
            found.append(Observation(axis, layout, value, evidence, reason or None))
    return found


def _quoted(stages: tuple[str, ...]) -> str:
    return ", ".join(f"'{stage}'" for stage in stages)


def _placement(seen: Evidence) -> Finding:
    def where(stages: tuple[str, ...]) -> set[tuple[str, str]]:
        query = f"select distinct process, device from spans where stage in ({_quoted(stages)})"
        return set(seen.rows(query))

    generating, training = where(GENERATING), where(TRAINING)
    if not generating or not training:
        return None, "the ledger has no spans of both generation and training"
    if generating & training:
        devices = ", ".join(sorted({device for _, device in generating | training}))
        return f"colocated: the same process generates and trains, on {devices}", ""
    shared = {device for _, device in generating} & {device for _, device in training}
    if shared:
        return f"colocated: processes of their own on {', '.join(sorted(shared))}", ""
    return "disaggregated: generation and training on devices of their own", ""


def _synchrony(seen: Evidence) -> Finding:
    generating, training = seen.view.tables.spans.of(*GENERATING), seen.view.tables.spans.of(*TRAINING)
    if not len(generating) or not len(training):
        return None, "the ledger has no spans of both generation and training"
    either = seen.view.tables.spans.of(*GENERATING, *TRAINING)
    both = generating.union_seconds() + training.union_seconds() - either.union_seconds()
    share = both / either.union_seconds() if either.union_seconds() else 0.0
    if share < OVERLAP:
        return "synchronous: generation and training never overlap", ""
    return f"asynchronous: generation and training overlap in {fmt.number(100 * share)} % of their time", ""


def _lag(seen: Evidence) -> Finding:
    query = "select max(t.policy_version - r.policy_version) from trained t join rollouts r using (sample_id)"
    most = seen.one(query)
    if most is None:
        return None, "no trained record tells the version that sampled it"
    return f"at most {most} update{'s' if most != 1 else ''}", ""


def _versions(seen: Evidence) -> Finding:
    versions = seen.note("versions") or {}
    named = [f"{name} {versions[name]}" for name in ("torch", "deepspeed", "megatron-core") if name in versions]
    return (", ".join(named), "") if named else (None, "the cell noted no version of a training library")


def _engine(seen: Evidence) -> Finding:
    engine = seen.note("engine")
    return (str(engine), "") if engine else (None, "the cell noted no engine")


def _sync(seen: Evidence) -> Finding:
    query = """select kind, count(*), median(bytes), bool_and(coalesce(verified, false)) from publications
               where policy_version > 0 group by kind order by kind"""
    rows = seen.rows(query)
    if not rows:
        return None, "nothing was published after the initial weights"
    parts = [
        f"{kind}, {count} times, {fmt.quantity(size, 'bytes')} each, {'verified' if verified else 'not verified'}"
        for kind, count, size, verified in rows
    ]
    return "; ".join(parts), ""


def _turns(seen: Evidence) -> Finding:
    query = f"""with first as (select policy_mask, response_tokens from rollouts limit {FIRST_SAMPLES})
                select count(*), count(*) filter (list_sum(policy_mask) < len(response_tokens)) from first"""
    samples, mixed = seen.rows(query)[0]
    if not samples:
        return None, "no rollout was recorded"
    if mixed:
        return f"{mixed} of the first {samples} completions hold tokens that the policy did not sample", ""
    return f"single turn: every response token of the first {samples} completions is the policy's", ""


def _queue(seen: Evidence) -> Finding:
    events, deepest = seen.rows("select count(*), max(depth_records) from queue")[0]
    return (f"at most {deepest} records deep", "") if events else (None, "no queue event was recorded")


def _recovery(seen: Evidence) -> Finding:
    count = seen.one("select count(*) from checkpoints where ok")
    return (f"{count} checkpoints written", "") if count else (None, "no checkpoint was written in this run")


def _telemetry(seen: Evidence) -> Finding:
    count = seen.one("select count(distinct key) from native")
    return (f"{count} figures of its own", "") if count else (None, "no figure of its own was read")


def _logprobs(seen: Evidence) -> Finding:
    rows = seen.rows("select distinct behavior_logprob_kind from rollouts order by 1")
    if not rows:
        return None, "no rollout was recorded"
    behavior = f"behaviour: {', '.join(fmt.words(kind) for (kind,) in rows)}"
    steps = seen.one("select count(distinct trace_id) from spans where stage = 'logprob_recompute'")
    recomputed = f"recomputed in {steps} batches" if steps else "never recomputed"
    old = seen.one("select exists(select 1 from trained where old_logprobs is not null)")
    separate = "a separate old policy" if old else "no separate old policy (its ratio is 1 by construction)"
    return f"{behavior}; {recomputed}; {separate}", ""


def _trainable(seen: Evidence) -> Finding:
    model = seen.note("model")
    if not model:
        return None, "the cell noted no parameter counts"
    every, some = int(model["parameters"]), int(model["trainable"])
    if every == some:
        return f"all {fmt.number(every)} parameters trained", ""
    return f"{fmt.number(some)} of {fmt.number(every)} parameters trained", ""


LOOKS: dict[str, tuple[str, Callable[[Evidence], Finding]]] = {
    "placement": ("spans: process, device, stage", _placement),
    "synchrony": ("spans: stage, t_start, t_end", _synchrony),
    "lag_bound": ("trained.policy_version, rollouts.policy_version", _lag),
    "training_backend": ("manifest: versions", _versions),
    "rollout_engine": ("manifest: engine", _engine),
    "weight_sync": ("publications: kind, bytes, verified", _sync),
    "multi_turn": ("rollouts: policy_mask", _turns),
    "queue": ("queue: depth_records", _queue),
    "recovery": ("checkpoints: ok", _recovery),
    "telemetry": ("native: key", _telemetry),
    "logprob_regime": ("rollouts.behavior_logprob_kind, trained.old_logprobs, spans.stage", _logprobs),
    "adapters_lora": ("manifest: model", _trainable),
}
