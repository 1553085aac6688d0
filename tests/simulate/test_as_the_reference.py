"""Admission and staleness are decided as in the reference loop, whose own classes are asked the same."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.reference.queue import RolloutQueue as ReferenceQueue
from adapters.reference.staleness import StalenessPolicy as ReferencePolicy
from harness.simulate.queue import RolloutQueue
from harness.simulate.records import Group
from harness.simulate.settings import Limits, Staleness
from harness.simulate.staleness import StalenessPolicy

LIMIT = st.none() | st.integers(1, 40)


class Silent:
    """A probe or a recorder that hears nothing."""

    def queue(self, *arguments: Any, **fields: Any) -> None:
        """Nothing."""


def reference_sample(sample: Any) -> Any:
    prompt = SimpleNamespace(token_ids=[0] * sample.group.prompt_tokens)
    completion = SimpleNamespace(tokens=[0] * sample.length, policy_tokens=sample.length)
    return SimpleNamespace(prompt=prompt, completion=completion, text="", policy_version=sample.version)


@given(
    limits=st.tuples(LIMIT, LIMIT, st.none() | st.integers(1, 500), st.none() | st.floats(0.1, 9), LIMIT),
    lag_bound=st.none() | st.integers(0, 5),
    per_batch=st.integers(1, 4),
    moves=st.lists(
        st.tuples(st.sampled_from("pga"), st.integers(0, 5), st.integers(0, 5), st.integers(0, 6)), max_size=25
    ),
)
@settings(max_examples=60)
def test_admission(limits: Any, lag_bound: int | None, per_batch: int, moves: Any) -> None:
    names = ("records", "tokens", "bytes", "age_s", "lag")
    asked: dict[str, Any] = dict(zip(names, limits, strict=True))
    theirs = ReferenceQueue(
        SimpleNamespace(
            queue=SimpleNamespace(**asked),
            lag_bound=10**6 if lag_bound is None else lag_bound,
            prompts_per_batch=per_batch,
            updates_per_batch=2,
        ),  # type: ignore[arg-type]
        Silent(),  # type: ignore[arg-type]
    )
    batch = SimpleNamespace(groups=per_batch, tokens=None, updates=2)
    settings = SimpleNamespace(queue=Limits(**asked), lag_bound=lag_bound, batch=batch, synchronous=False)
    ours = RolloutQueue(settings, 10.0, Silent())  # type: ignore[arg-type]
    for step, (move, turn, served, number) in enumerate(moves):
        now = step * 0.5
        if move == "p":
            group = Group(step, 3, [number + 1, 2])
            for sample in group.samples:
                sample.version = served
            ours.put(group, now)
            theirs.put([reference_sample(sample) for sample in group.samples], int(now * 1e9))
        elif move == "g":
            mine, other = ours.get(now), theirs.get(per_batch, int(now * 1e9))
            assert (mine is None) == (other is None)
        version = served + turn
        assert ours.admits(now, version, number, served) == (
            theirs.admits(int(now * 1e9), version, number, served) is None
        )
        assert ours.closed == theirs.closed
        assert (len(ours), ours.records, ours.tokens, ours.bytes) == (
            len(theirs),
            theirs.records,
            theirs.tokens,
            theirs.bytes,
        )


@given(
    asked=st.builds(
        Staleness,
        max_lag=st.none() | st.integers(0, 4),
        max_age_s=st.none() | st.floats(0, 5),
        correction=st.just("none"),
        level=st.just("token"),
        cap=st.just(2.0),
        ess_floor=st.none(),
        stale_epochs=st.none() | st.integers(1, 3),
        rebalance=st.booleans(),
        sync_every=st.none() | st.integers(1, 4),
    ),
    epochs=st.integers(1, 3),
    version=st.integers(0, 6),
    sampled=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    waited=st.floats(0, 6),
    growth=st.integers(-3, 3),
)
@settings(max_examples=80)
def test_staleness(asked: Staleness, epochs: int, version: int, sampled: list[int], waited: float, growth: int) -> None:
    group = Group(0, 1, [1] * len(sampled))
    for sample, own in zip(group.samples, sampled, strict=True):
        sample.version = min(own, version)
    told = SimpleNamespace(staleness=asked, inner_epochs=epochs, batch=SimpleNamespace(inner_epochs=epochs))
    ours, theirs = StalenessPolicy(told), ReferencePolicy(told)  # type: ignore[arg-type]
    others: list[Any] = [reference_sample(sample) for sample in group.samples]
    for sample, other in zip(group.samples, others, strict=True):
        assert ours.rejects(sample, version, waited) == theirs.rejects(other, version, waited)
    assert ours.epochs(group.samples, version) == theirs.plan(others, version).epochs
    assert ours.is_control(version) == theirs.is_control(version)
    arguments = (3, growth, growth == 0, 8)
    assert ours.rebalanced(*arguments) == theirs.rebalanced(*arguments)
