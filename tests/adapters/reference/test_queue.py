"""The queue: order, counts that follow from its events, and limits that never cut or starve anything."""

from collections import deque
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from adapters.reference.queue import RolloutQueue, sample_bytes
from adapters.reference.settings import QueueLimits, Settings
from harness.probe import Probe
from tests.adapters.reference.cells import settings
from tests.adapters.reference.groups import Queued, group, sample

LENGTHS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8)
SECOND = 1_000_000_000
TINY: dict[str, Any] = {"records": 1, "tokens": 1, "bytes": 1, "age_s": 0.0, "lag": 0}
NONE = dict.fromkeys(TINY)


@cache
def _plain() -> Settings:
    return settings(Path(gettempdir()), task={"prompts_per_batch": 2})


def queue_of(limits: dict[str, Any], bound: int = 100, **task: Any) -> tuple[RolloutQueue, list[dict[str, Any]]]:
    probe = Queued()
    cell = replace(_plain(), lag_bound=bound, queue=QueueLimits(**NONE | limits), **task)
    return RolloutQueue(cell, cast(Probe, probe)), probe.rows


@given(LENGTHS, st.integers(1, 3), st.integers(0, 9))
def test_groups_leave_in_order_and_depths_follow_from_the_events(lengths: list[list[int]], take: int, old: int) -> None:
    queue, rows = queue_of({})
    left, waiting, gone = [], [], []
    for number, group_lengths in enumerate(lengths):
        mine = group(f"p{number}", group_lengths, version=number)
        queue.put(mine, now=number)
        waiting += mine
        if number % 3 == 2:
            gone += queue.drop(lambda s, waited: "old" if s.policy_version == old else None, now=number)
            waiting = [s for s in waiting if s.policy_version != old]
        if number % 2 and (taken := queue.get(take, now=number)) is not None:
            left += taken
            waiting = waiting[len(taken) :]
    assert [s.sample_id for s in queue.samples] == [s.sample_id for s in waiting]
    assert [s.sample_id for s in left] == sorted(s.sample_id for s in left)
    depth = {"records": 0, "tokens": 0}
    for row in rows:
        sign = {"put": 1, "get": -1, "drop": -1}[row["event"]]
        for unit in depth:
            depth[unit] += sign * row[unit]
            assert row[f"depth_{unit}"] == depth[unit] >= 0
    assert (queue.records, queue.tokens) == (depth["records"], depth["tokens"])
    assert queue.bytes == sum(sample_bytes(s) for s in waiting)
    assert {s.sample_id for s, _ in gone} <= {s.sample_id for s, reason in gone if reason == "old"}


@pytest.mark.parametrize("limit", list(TINY))
def test_each_limit_closes_admission_and_is_named(limit: str) -> None:
    queue, rows = queue_of({limit: TINY[limit]})
    assert queue.admits(now=0, policy_version=0, in_flight=0, served=0) is None
    for name in "ab":
        queue.put(group(name, [3, 4]), now=0)
    assert queue.admits(now=0, policy_version=0, in_flight=1, served=0) == limit
    assert queue.admits(now=0, policy_version=0, in_flight=1, served=0) == limit
    queue.put(group("c", [5]), now=0)
    assert queue.records == 5, "what was in flight still comes in"
    queue.get(2, now=SECOND)
    assert queue.admits(now=SECOND, policy_version=0, in_flight=0, served=0) is None
    events = [(row["event"], row["reason"]) for row in rows if row["event"] in {"close", "open"}]
    assert events == [("close", limit), ("open", None)]


def test_a_change_of_the_limit_that_closes_is_written() -> None:
    queue, rows = queue_of({"records": 1}, bound=2)
    for name in "ab":
        queue.put(group(name, [3, 4]), now=0)
    assert queue.admits(now=1, policy_version=0, in_flight=0, served=0) == "records"
    assert queue.admits(now=2, policy_version=3, in_flight=0, served=1) == "lag_bound"
    assert [(row["t"], row["reason"]) for row in rows if row["event"] == "close"] == [(1, "records"), (2, "lag_bound")]


def test_age_and_lag_are_those_of_the_oldest() -> None:
    queue, _ = queue_of({"age_s": 2.0, "lag": 3})
    queue.put(group("a", [1], version=4), now=0)
    queue.put(group("b", [1], version=6), now=SECOND)
    assert queue.admits(SECOND, policy_version=6, in_flight=0, served=6) is None
    assert queue.admits(2 * SECOND, policy_version=6, in_flight=0, served=6) == "age_s"
    assert queue.admits(SECOND, policy_version=7, in_flight=0, served=7) == "lag"


def test_a_lost_group_keeps_its_turn_and_a_dropped_one_gives_it_up() -> None:
    queue, rows = queue_of({})
    queue.put([], now=0)
    queue.put(group("a", [1, 2]), now=0)
    queue.put(group("b", [3]), now=0)
    assert len(queue) == 3
    dropped = queue.drop(lambda s, waited: f"waited {waited:g}" if s.group_id == "a" else None, now=SECOND)
    assert [reason for _, reason in dropped] == ["waited 1", "waited 1"]
    assert len(queue) == 2
    assert [s.group_id for s in queue.get(2, now=SECOND) or []] == ["b"]
    assert queue.get(1, now=SECOND) is None
    assert rows[-2]["event"] == "drop"
    assert (rows[-2]["records"], rows[-2]["tokens"], rows[-2]["depth_tokens"]) == (2, 3, 3)


@given(LENGTHS)
def test_a_restored_queue_holds_what_the_checkpoint_kept(lengths: list[list[int]]) -> None:
    first, _ = queue_of({})
    for number, group_lengths in enumerate(lengths):
        first.put(group(f"p{number}", group_lengths, version=number), now=number)
    second, rows = queue_of({})
    second.restore(first.groups, now=77)
    assert second.groups == first.groups
    assert (second.records, second.tokens, second.bytes) == (first.records, first.tokens, first.bytes)
    assert {row["reason"] for row in rows} <= {"restored"}


def test_observations_count_in_bytes_and_in_no_tokens() -> None:
    one = sample("a.g0", 4)
    two = replace(one, completion=replace(one.completion, mask=[1, 0, 0, 1], logprobs=[-0.5, None, None, -0.5]))
    queue, _ = queue_of({})
    queue.put([two], now=0)
    assert queue.tokens == 2
    assert queue.bytes == 3 * 5 + 4 * 9


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "records": st.integers(1, 9),
        "tokens": st.integers(1, 30),
        "bytes": st.integers(1, 400),
        "age_s": st.floats(0, 3),
        "lag": st.integers(0, 3),
    },
)


@profile(max_examples=200)
@given(
    LIMITS, st.integers(0, 5), st.integers(1, 3), st.integers(1, 3), st.lists(st.integers(0, 2), min_size=8, max_size=8)
)
def test_a_loop_never_stops_and_never_exceeds_the_lag_bound(
    limits: dict[str, Any], bound: int, per_batch: int, updates: int, rhythm: list[int]
) -> None:
    """A pump in little: asks while it may, answers come in the order of asking, a batch is trained on when it is there.
    `rhythm` says how many answers come in between two looks at the queue."""
    queue, rows = queue_of(limits, bound, prompts_per_batch=per_batch, minibatches=updates)
    version = trained = asked = 0
    flying: deque[tuple[str, int]] = deque()
    for turn in range(40 * per_batch):
        now = turn * SECOND // 4
        while queue.admits(now, version, len(flying), served=version) is None and len(flying) < 8:
            flying.append((f"p{asked}", version))
            asked += 1
        for _ in range(min(rhythm[turn % 8], len(flying))):
            name, sampled_at = flying.popleft()
            queue.put(group(name, [2, 1], sampled_at), now)
        if (batch := queue.get(per_batch, now)) is not None:
            # while it trains, new work is asked for with the old weights
            while queue.admits(now, version + updates, len(flying), served=version) is None and len(flying) < 8:
                flying.append((f"p{asked}", version))
                asked += 1
            assert all(version - s.policy_version <= bound for s in batch)
            assert [s.group_id for s in batch[::2]] == [f"p{trained * per_batch + i}" for i in range(per_batch)]
            trained, version = trained + 1, version + updates
    if sum(rhythm):
        assert trained >= 4, "an answer comes in every eighth turn at least"
    if bound == 0:
        assert asked <= (trained + 1) * per_batch
    assert {row["reason"] for row in rows if row["event"] == "close"} <= {*limits, "lag_bound"}
