"""The shape of what grows with the number of GPUs, at small sizes."""

from dataclasses import replace

import pytest

from benchmarks.simulated_scale import DAY, DEVICE_HOURS, KINDS, line, row, row_of, scaled
from harness.simulate.simulate import simulate

ASYNCHRONOUS, SYNCHRONOUS, FIXED = KINDS


def test_the_rate_of_failures_is_the_published_one() -> None:
    assert pytest.approx(50_677, abs=1) == DEVICE_HOURS
    settings = scaled(ASYNCHRONOUS, 10_000, DAY)
    assert settings.trainer.mtbf_s is not None
    assert settings.rollout.mtbf_s is not None
    a_day = DAY / settings.trainer.mtbf_s + DAY / settings.rollout.mtbf_s * settings.rollout.replicas
    assert a_day == pytest.approx(419 / 54 * 10_000 / 16_384)


def test_a_barrier_idles_more_the_more_gpus_there_are_and_a_queue_does_not() -> None:
    barrier = [row(SYNCHRONOUS, devices, DAY / 4) for devices in (8, 64)]
    queue = [row(ASYNCHRONOUS, devices, DAY / 4) for devices in (8, 64)]
    assert barrier[0]["idle"] < barrier[1]["idle"]
    assert [found["lag_max"] for found in barrier] == [0, 0]
    assert all(found["idle"] < 0.3 for found in queue)
    assert queue[1]["lag_mean"] == pytest.approx(queue[0]["lag_mean"], rel=0.25)
    assert line(queue[0]).count("|") == line(barrier[1]).count("|")


def test_a_job_simulates_a_size_of_its_sweep() -> None:
    assert row_of("synchronous", 8) | {"cpu": 0} == row(SYNCHRONOUS, 8, DAY) | {"cpu": 0}


def test_lag_grows_with_the_gpus_where_the_batch_does_not() -> None:
    lags = [row(FIXED, devices, DAY / 16)["lag_mean"] for devices in (8, 64, 256)]
    assert lags == sorted(lags)
    assert lags[2] > 3 * lags[1]


def test_work_is_lost_where_something_fails() -> None:
    plain = scaled(ASYNCHRONOUS, 64, DAY / 4)
    often = replace(plain, trainer=replace(plain.trainer, mtbf_s=DAY / 24), seconds=DAY / 4)
    rarely, found = simulate(plain).figures, simulate(often).figures
    assert found["restarts"] > 0
    assert found["lost_tokens"] + found["redone_tokens"] > rarely["lost_tokens"] + rarely["redone_tokens"]
    assert found["tokens_per_s"] < rarely["tokens_per_s"]
