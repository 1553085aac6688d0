"""Tail quantiles of steps and rollouts, and what comes before the loop."""

from pathlib import Path

import numpy as np
import pytest

from tests.fakes import figures
from tests.ledgers import span
from tests.measure.loops import START, loop_cell
from tests.measure.loops import figures as loop_figures


def test_steps_of_unequal_length(tmp_path: Path) -> None:
    """Two updates a batch: the first ends 28 ms of rollout and 12 ms of training after the batch began, the second
    a gap of 1 ms and 12 ms of training later; then comes another gap."""
    found = figures(tmp_path, {"minibatches": 2, "steps": 12, "warmup_steps": 2})
    seconds = [0.040, 0.013, *[0.041, 0.013] * 4]
    for name, share in (("step_seconds_p50", 0.5), ("step_seconds_p95", 0.95), ("step_seconds_p99", 0.99)):
        assert found[name].value == pytest.approx(np.quantile(seconds, share))
    assert found["step_seconds"].value == pytest.approx((sum(seconds) + 0.001) / 10)


def test_rollouts_of_unequal_length(tmp_path: Path) -> None:
    """A completion of length n takes 4 ms for its first token and 20 / 7 ms for each further one."""
    found = figures(tmp_path)
    seconds = [0.004 + 0.020 * (length - 1) / 7 for length in (3, 5, 8, 4)]
    assert found["rollout_seconds_p50"].value == pytest.approx(np.quantile(seconds * 32, 0.5), rel=1e-6)
    assert found["rollout_seconds_p95"].value == pytest.approx(0.024)
    assert found["rollout_seconds_p99"].value == pytest.approx(0.024)
    assert found["rollout_tail_ratio"].value == pytest.approx(0.024 / np.median(seconds), rel=1e-6)


def test_startup_is_outside_every_rate(tmp_path: Path) -> None:
    begin = START - 5_000_000_000
    startup = [span("startup", begin, begin + 2_000_000_000), span("startup", begin + 2_500_000_000, START - 1)]
    found = loop_figures(loop_cell(tmp_path, spans=startup))
    assert found["startup_seconds"].value == pytest.approx(2 + 2.5, abs=1e-6)
    assert found["t_seq_seconds"].value == pytest.approx(0.095)


def test_gradient_norms_of_unequal_steps(tmp_path: Path) -> None:
    updates = {1: {"grad_norm": 1.0, "loss": 0.5}, 2: {"grad_norm": 2.0, "loss": 1.0}, 3: {"grad_norm": 9.0, "loss": 3}}
    found = loop_figures(loop_cell(tmp_path, updates=updates))
    assert found["grad_norm"].value == pytest.approx(4.0)
    assert found["grad_norm_p50"].value == pytest.approx(2.0)
    assert found["loss"].value == pytest.approx(1.5)
