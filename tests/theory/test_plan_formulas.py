"""Pools, critical path, exposed time, queue and checkpoints against worked and published numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.theory import queue
from harness.theory.checkpoint import best_interval, beyond_small, checkpoint_overhead, job_between_failures
from harness.theory.pipeline import Stage, best_split, critical_path, exposed_period, overlap_speedup

TIMES = st.floats(1e-3, 1e3)


@pytest.mark.parametrize(
    ("generate", "train", "measured"), [(458, 108 + 337, 520), (501, 120 + 347, 566)], ids=["FSDP2", "Megatron"]
)
def test_one_step_off_rows_have_one_exposed_constant(generate: float, train: float, measured: float) -> None:
    """verl's one-step-off page: the two rows fit with s = 63.5 s, each within 1 %."""
    assert exposed_period(generate, train, 63.5) == pytest.approx(measured, rel=0.01)


def test_asynchrony_that_was_slower_comes_out_slower() -> None:
    """marin 8936: 25 updates with 143 s of training, 3 s of waiting and 184.3 s of exposed synchronisation."""
    assert exposed_period(0, (143 + 3) / 25, 184.3 / 25) > 250.5 / 25


@given(TIMES, TIMES)
def test_overlap_alone_never_gives_more_than_two(rollout: float, train: float) -> None:
    assert 1 <= overlap_speedup(rollout, train) <= 2


@given(TIMES, TIMES, st.integers(2, 40))
def test_no_other_split_is_shorter(rollout: float, train: float, devices: int) -> None:
    split = best_split(rollout, train, devices)
    assert split.rollout + split.train == devices
    assert all(split.period <= max(rollout / n, train / (devices - n)) for n in range(1, devices))


def test_pools_follow_the_measured_rates() -> None:
    split = best_split(90 * 8, 10 * 8, 16)
    assert (split.rollout, split.train) == (14, 2)


def test_a_hidden_stage_is_on_no_critical_path() -> None:
    stages = {"rollout": Stage(70), "train": Stage(80), "sync": Stage(5, ("train", "rollout"))}
    assert critical_path(stages) == (["train", "sync"], 85)
    faster = stages | {"rollout": Stage(7)}
    assert critical_path(faster)[1] == 85


@pytest.mark.parametrize("stages", [{"a": Stage(1, ("b",))}, {"a": Stage(1, ("b",)), "b": Stage(1, ("a",))}])
def test_a_path_that_never_begins(stages: dict[str, Stage]) -> None:
    with pytest.raises(ValueError, match="waits for"):
        critical_path(stages)


@pytest.mark.parametrize(
    ("write", "devices", "minutes", "waste"),
    [(4.7, 8, 244, 0.0006), (51, 32, 402, 0.0042), (120, 512, 154, 0.026), (60, 16_384, 19.3, 0.104)],
)
def test_published_checkpoint_table(write: float, devices: int, minutes: float, waste: float) -> None:
    """From Llama 3's 50,677 GPU-hours between interruptions of one GPU."""
    between = job_between_failures(50_677 * 3600, devices)
    best = best_interval(write, between)
    assert best / 60 == pytest.approx(minutes, rel=0.01)
    assert checkpoint_overhead(best, write, between) == pytest.approx(waste, rel=0.08)
    assert bool(beyond_small(best, write, between)) == (devices == 16_384)


@given(TIMES, TIMES)
def test_stability(arrival: float, service: float) -> None:
    assert (queue.growth(arrival, service) > 0) == (arrival > service)
    assert math.isinf(queue.seconds_until(0, 1, arrival, service)) == (arrival <= service)
    assert queue.starving_share(arrival, service) == pytest.approx(max(1 - arrival / service, 0))
