"""Two ledgers of one experiment: where their histories first differ, and whether they trained on the same [12.5.3]."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from harness.contract import CellLedger

ASPECTS: tuple[tuple[str, str], ...] = (
    ("prompt", "prompt_tokens"),
    ("sampled tokens", "response_tokens"),
    ("behaviour policy version", "policy_version"),
    ("behaviour log-probs", "behavior_logprobs"),
    ("reward", "reward_total"),
    ("verifier version", "verifier_version"),
    ("advantage", "advantage"),
    ("trainer log-probs", "trainer_logprobs"),
    ("learning rate", "learning_rate"),
    ("loss", "loss"),
    ("gradient norm", "grad_norm"),
    ("resulting policy version", "policy_version_after"),
)
"""What an optimizer step follows from and gives, in the order in which one causes the next: of several that differ in a
step the first is told. Times, attempts and publication numbers are no part of it."""

_EVENTS = """
    select t.step, t.sample_id, r.prompt_tokens, r.response_tokens, r.policy_version, r.behavior_logprobs,
           r.reward_total, r.verifier_version, t.advantage, t.trainer_logprobs, u.learning_rate, u.loss, u.grad_norm,
           u.policy_version_after
    from {side}_trained t left join {side}_rollouts r using (sample_id)
    left join {side}_updates u on u.step = t.step and u.batch_id = t.batch_id"""


@dataclass(frozen=True)
class Difference:
    """The first event in which two histories differ: the optimizer step, what of it, the sample, and both values."""

    step: int
    aspect: str
    sample_id: str
    left: str
    right: str


@dataclass(frozen=True)
class Divergence:
    """How a history (`right`) compares with another (`left`).

    Attributes:
        first: None where every trained event is the same, bit for bit.
        steps_alike: optimizer steps before the first difference.
        missing: sample ids that only the left trained on, `extra` only the right; each as often as it was more.
        prompts_skipped: prompts that the left trained on more often, with how often; `prompts_repeated` the right.
        parameters_equal: whether the hashes of the trained parameters agree; None where one has none.
    """

    first: Difference | None
    steps_alike: int
    missing: list[str]
    extra: list[str]
    prompts_skipped: dict[str, int]
    prompts_repeated: dict[str, int]
    parameters_equal: bool | None

    @property
    def same_samples(self) -> bool:
        """Whether both trained on the same multiset of samples."""
        return not self.missing and not self.extra

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"same_samples": self.same_samples}


def divergence(left: CellLedger, right: CellLedger) -> Divergence:
    """Compare two histories event by event, in the order of optimizer steps.

    Only what was trained on counts, and only the effective history: what a restart took back is in neither.
    """
    with duckdb.connect() as connection:
        for side, ledger in (("left", left), ("right", right)):
            for table in ("rollouts", "trained", "updates"):
                connection.from_parquet(str(ledger.path(table))).create_view(f"{side}_{table}")
            connection.execute(f"create view {side}_events as {_EVENTS.format(side=side)}")
        first = _first(connection)
        alike = "select count(*) from left_updates where step < ?"
        steps = connection.execute(alike, [first.step if first else 2**62]).fetchall()[0][0]
        missing, extra = _surplus(_trained(connection, "left"), _trained(connection, "right"))
        skipped, repeated = _surplus(_prompts(connection, "left"), _prompts(connection, "right"))
    hashes = [ledger.manifest.get("final_parameter_sha256") for ledger in (left, right)]
    return Divergence(
        first=first,
        steps_alike=steps,
        missing=sorted(missing.elements()),
        extra=sorted(extra.elements()),
        prompts_skipped=dict(sorted(skipped.items())),
        prompts_repeated=dict(sorted(repeated.items())),
        parameters_equal=None if None in hashes else hashes[0] == hashes[1],
    )


def _first(connection: duckdb.DuckDBPyConnection) -> Difference | None:
    found = [difference for difference in [_composition(connection), *_aspects(connection)] if difference]
    return min(found, key=lambda difference: difference.step, default=None)


def _composition(connection: duckdb.DuckDBPyConnection) -> Difference | None:
    """A sample that only one of the two trained on in a step."""
    rows = connection.execute("""
        select coalesce(a.step, b.step) as place, coalesce(a.sample_id, b.sample_id) as who, a.step is not null
        from left_events a full join right_events b using (step, sample_id)
        where a.sample_id is null or b.sample_id is null order by place, who limit 1""").fetchall()
    for step, sample, in_left in rows:
        return Difference(
            step, "batch", sample, *(("trained on", "not there") if in_left else ("not there", "trained on"))
        )
    return None


def _aspects(connection: duckdb.DuckDBPyConnection) -> list[Difference | None]:
    return [_aspect(connection, name, column) for name, column in ASPECTS]


def _aspect(connection: duckdb.DuckDBPyConnection, name: str, column: str) -> Difference | None:
    rows = connection.execute(f"""
        select a.step, a.sample_id, a.{column}, b.{column}
        from left_events a join right_events b using (step, sample_id)
        where a.{column} is distinct from b.{column} order by a.step, a.sample_id limit 1""").fetchall()
    for step, sample, left, right in rows:
        return Difference(step, name, sample, *_shown(left, right))
    return None


def _shown(left: Any, right: Any) -> tuple[str, str]:
    """Both values; of two lists the first elements that differ."""
    if not isinstance(left, Sequence) or not isinstance(right, Sequence) or isinstance(left, str):
        return str(left), str(right)
    at = next((i for i, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return f"{len(left)} tokens", f"{len(right)} tokens"
    return f"{left[at]} at token {at}", f"{right[at]} at token {at}"


def _trained(connection: duckdb.DuckDBPyConnection, side: str) -> Counter[str]:
    rows = connection.execute(f"select sample_id, count(*) from {side}_trained group by sample_id").fetchall()
    return Counter(dict(rows))


def _prompts(connection: duckdb.DuckDBPyConnection, side: str) -> Counter[str]:
    """How many groups of each prompt were trained on."""
    rows = connection.execute(f"""
        select r.prompt_id, count(distinct r.group_id)
        from {side}_rollouts r where r.sample_id in (select sample_id from {side}_trained) group by r.prompt_id
        """).fetchall()
    return Counter(dict(rows))


def _surplus(left: Counter[str], right: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    return left - right, right - left
