"""Parts of the simulator by hand: a replica's times, distributions, settings, what is refused, what stands still."""

import warnings

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import SystemFailure, UserError
from harness.simulate.draws import Distribution, Draws
from harness.simulate.ratios import Ratios
from harness.simulate.records import Group, Request
from harness.simulate.replica import Replica
from harness.simulate.settings import Rollout, Staleness, Synthetic
from tests.simulate.worlds import figures
from tests.simulate.worlds import settings as smoke

ROLLOUT = Rollout(1, 4, None, "group", 0.1, 0.05, 0.01, None, 0.0)


def served(lengths: list[int], rollout: Rollout = ROLLOUT, prompt: int = 10) -> list[float]:
    env, group = simpy.Environment(), Group(0, prompt, lengths)
    replica = Replica(env, 0, rollout, lambda *_: None)
    replica.take(Request(group.samples, [group]))
    replica.touch()
    env.run()
    return [sample.t_end for sample in group.samples]


def test_steps_get_shorter_as_sequences_end() -> None:
    """The prompt takes 0.1 s and gives both first tokens; two steps of 0.2 s together, then two of 0.15 s alone."""
    assert served([3, 5]) == pytest.approx([0.1 + 2 * 0.2, 0.1 + 2 * 0.2 + 2 * 0.15])


def test_a_slot_is_used_again_at_once() -> None:
    one = Rollout(1, 1, None, "group", 0.1, 0.0, 0.0, None, 0.0)
    assert served([3, 5], one) == pytest.approx([0.2, 0.6])


def test_a_full_cache_makes_the_next_wait() -> None:
    tight = Rollout(1, 4, 25, "group", 0.1, 0.0, 0.0, None, 0.0)
    assert served([5, 5], tight) == pytest.approx([0.4, 0.8])


def test_a_pause_splits_a_completion_between_versions() -> None:
    env, group = simpy.Environment(), Group(0, 0, [10])
    replica = Replica(env, 0, Rollout(1, 1, None, "group", 1.0, 0.0, 0.0, None, 0.0), lambda *_: None)
    replica.take(Request(group.samples, [group]))
    replica.touch()
    env.run(until=3.5)
    replica.serve(1, 2.0)
    env.run()
    (sample,) = group.samples
    assert sample.segments == [(0, 4, 0.0, 3.5), (1, 6, 5.5, 11.0)]
    assert sample.version == 0


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 5))
@settings(max_examples=40)
def test_every_token_is_paid_for(lengths: list[int], slots: int) -> None:
    rollout = Rollout(1, slots, None, "group", 0.1, 0.05, 0.0, None, 0.0)
    ends = served(lengths, rollout)
    work = sum(length - 1 for length in lengths)
    assert max(ends) >= work * (0.1 / slots + 0.05) - 1e-6
    assert max(ends) <= work * 0.15 + 1e-6


@pytest.mark.parametrize(
    "given_",
    [
        {"name": "uniform", "low": 1, "high": 5},
        {"name": "exponential", "mean": 3},
        {"name": "gamma", "mean": 3, "shape": 2},
        {"name": "lognormal", "mean": 3, "sigma": 0.5},
        {"name": "pareto", "least": 2, "tail": 3},
        {"name": "measured", "values": [1, 2, 6]},
        3,
        "3e0",
    ],
    ids=str,
)
def test_distributions_have_the_mean_of_their_name(given_: object) -> None:
    found = Distribution.read(given_, "x")
    drawn = found.sample(np.random.default_rng(3), 100_000)
    assert drawn.mean() == pytest.approx(3, rel=0.03)
    assert found.mean == pytest.approx(3, rel=0.03)


def test_draws_are_whole_and_the_same_for_a_seed() -> None:
    spread = Distribution.read({"name": "exponential", "mean": 2, "at_most": 4}, "x")
    one, two = (Draws(spread, np.random.default_rng(1), whole=True) for _ in range(2))
    drawn = [one.next() for _ in range(5000)]
    assert drawn == [two.next() for _ in range(5000)]
    assert set(drawn) == {1, 2, 3, 4}


def test_synthetic_weights_have_the_mean_one_and_the_stated_ess() -> None:
    asked = Synthetic(0.5, 0.1, 0.2)
    ratios = Ratios(
        asked, Staleness(None, None, "clip", "token", 2.0, None, None, False, None), np.random.default_rng(0)
    )
    (sample,) = Group(0, 1, [200_000]).samples
    sample.version = 3
    weights = np.exp(ratios.tokens(sample, 5))
    assert weights.mean() == pytest.approx(1, abs=0.01)
    assert weights.sum() ** 2 / (weights**2).sum() / len(weights) == pytest.approx(np.exp(-0.25), rel=0.02)
    token, _, above = ratios.shares([sample], 5)
    assert token == pytest.approx(np.exp(-0.25))
    assert above == pytest.approx((weights > 2).mean(), rel=0.1)


def test_the_shares_of_a_lag_of_hundreds_are_numbers() -> None:
    ratios = Ratios(
        Synthetic(0.5, 0.1, 0.2),
        Staleness(None, None, "clip", "token", 2.0, None, None, False, None),
        np.random.default_rng(0),
    )
    old, new = Group(0, 2, [64, 64]).samples
    old.version, new.version = 0, 200
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        token, sequence, above = ratios.shares([old, new], 200)
    assert token == pytest.approx(0, abs=1e-300)
    assert sequence == pytest.approx(0.5)
    assert 0 < above < 0.5


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["seconds=null"], "it would never end"),
        (["batch.groups=4"], "not both"),
        (["rollout.request=part"], "batch.groups"),
        (["placement=colocated"], "placement=colocated"),
        (["rollout.step_s=0"], "decoding takes no time"),
        (["rollout.kv_tokens=100"], "do not fit"),
        (["response_tokens={name: pareto, least: 9, tail: 2}"], "may not fit"),
        (["rollout.replicas=0"], "rollout.replicas=0: it must be above 0"),
        (["rollout.replicas=1.5"], "expected a whole number"),
        (["staleness.ess_floor=1.5"], "staleness.ess_floor=1.5: a share is at most 1"),
        (["synthetic.right=2"], "synthetic.right=2"),
        (["staleness.correction=cut"], "one of none, clip, mask"),
        (["verifier.seconds={name: gamma, mean: -1, shape: 2}"], "verifier.seconds.mean=-1: it must not be negative"),
        (["trainer.fixed_s=.inf"], "it has to be finite"),
        (["nonsense=1"], "there is no setting nonsense"),
    ],
)
def test_bad_settings_are_refused_by_name(words: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says.replace(".", r"\.")) as refused:
        figures(*words)
    assert "\n" not in str(refused.value)


def test_a_loop_that_drops_all_that_it_generates_is_not_simulated_for_ever() -> None:
    words = ("rollout.replicas=1", "staleness.max_age_s=0.5")
    with pytest.raises(SystemFailure, match="dropped or lost before a batch is full"):
        figures(*words, overlap="synchronous")


def test_a_loop_without_a_limit_that_drains_is_simulated() -> None:
    assert figures("queue.tokens=null", "rollout.replicas=4", "seconds=20")["backpressure"] == 0


def test_failures_cost_what_they_are_asked_to() -> None:
    calm = figures("seconds=60", overlap="deep")
    restless = figures("seconds=60", "trainer.mtbf_s=10", "trainer.restart_s=2", "checkpoint.every=4", overlap="deep")
    assert restless["restarts"] > 0
    assert restless["restart_s"] == pytest.approx(2 * restless["restarts"])
    assert restless["redone_steps"] > 0
    assert restless["tokens_per_s"] < calm["tokens_per_s"]
    assert smoke("trainer.mtbf_s=10").trainer.mtbf_s == 10
