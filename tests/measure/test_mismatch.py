"""Mismatch is what is left of the ratio at zero lag; lag never gets into it."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measure.figures.mismatch import bucket_label, length_buckets
from tests.fakes import figures

EXPM1 = math.expm1(0.25) - 0.25


def test_constant_mismatch(tmp_path: Path) -> None:
    found = figures(tmp_path, log_ratios=[0.25])
    assert found["mismatch_mean"].value == pytest.approx(0.25, rel=1e-6)
    assert found["mismatch_max"].value == pytest.approx(0.25, rel=1e-6)
    assert found["mismatch_k1"].value == pytest.approx(-0.25, rel=1e-6)
    assert found["mismatch_k3"].value == pytest.approx(EXPM1, rel=1e-5)
    assert found["mismatch_mean"].n == 640


def test_buckets_of_completion_length(tmp_path: Path) -> None:
    """Lengths 2, 9 and 20 fall into 1-8, 9-16 and 17-32, each with its own mismatch."""
    found = figures(tmp_path, {"max_tokens": 32}, lengths=[2, 9, 20, 20], log_ratios=[0.5, 0.125, -0.25, 0.25])
    assert found["mismatch_mean[1-8]"].value == pytest.approx(0.5, rel=1e-6)
    assert found["mismatch_mean[9-16]"].value == pytest.approx(0.125, rel=1e-6)
    assert found["mismatch_mean[17-32]"].value == pytest.approx(0.25, rel=1e-6)
    assert found["mismatch_k1[17-32]"].value == pytest.approx(0, abs=1e-9)
    assert found["mismatch_mean"].value == pytest.approx((2 * 0.5 + 9 * 0.125 + 40 * 0.25) / 51, rel=1e-6)
    assert found["mismatch_max"].value == pytest.approx(0.5, rel=1e-6)
    assert found["mismatch_mean[17-32]"].n == 8 * 4 * 40


def test_a_mean_of_means_stands_beside_the_mean_of_tokens(tmp_path: Path) -> None:
    found = figures(tmp_path, {"max_tokens": 32}, lengths=[2, 9, 20, 20], log_ratios=[0.5, 0.0, 0.0, 0.0])
    k3 = math.expm1(0.5) - 0.5
    assert found["mismatch_k3"].value == pytest.approx(2 * k3 / 51, rel=1e-5)
    assert found["mismatch_k3_per_completion"].value == pytest.approx(k3 / 4, rel=1e-5)


def test_what_an_unmodelled_decoding_left_is_no_mismatch(tmp_path: Path) -> None:
    """top-p left 0.8 of the mass at every token, so that every ratio is 0.8."""
    found = figures(tmp_path, {"top_p": 0.8}, log_ratios=[math.log(0.8)])
    assert found["decoding_log_mass"].value == pytest.approx(math.log(0.8), rel=1e-6)
    assert found["mismatch_mean"].value is None
    assert found["ess_sequences_share"].value is None
    assert "decoding_log_mass" in str(found["ess_sequences_share"].reason)
    assert figures(tmp_path / "modelled")["decoding_log_mass"].value is None


def test_lag_never_gets_into_it(tmp_path: Path) -> None:
    """Half of the rows are one update old and carry 0.1 more a token; only the fresh half counts."""
    found = figures(tmp_path, {"inner_epochs": 2, "warmup_steps": 2}, log_ratios=[0.0], log_ratio_per_lag=0.1)
    assert found["lag_max"].value == 1
    assert found["mismatch_max"].value == 0
    assert found["mismatch_mean"].n == 4 * 80
    assert found["log_ratio_max"].value == pytest.approx(0.1, rel=1e-6)


def test_recomputed_logprobs_tell_nothing(tmp_path: Path) -> None:
    found = figures(tmp_path, logprob_kind="recomputed")
    assert found["mismatch_k3"].value is None
    assert "recomputed by the trainer" in str(found["mismatch_k3"].reason)
    assert found["ess_tokens"].value == pytest.approx(80)


@settings(deadline=None)
@given(st.integers(1, 10**6))
def test_a_length_lies_in_its_bucket(tokens: int) -> None:
    low, high = bucket_label(int(length_buckets(np.array([tokens]))[0])).split("-")
    assert int(low) <= tokens <= int(high)
