"""Ratios, ESS and clipping against closed forms, on the fake loop and on single rows."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measure.columns import log_sums
from harness.measure.figures.importance import LogRatioMax
from harness.theory.ess import ess
from tests.fakes import figures, view

LENGTHS = (3, 5, 8, 4)
PER_GROUP = sum(LENGTHS)


def weights_ess(log_w: list[float]) -> float:
    weights = [math.exp(value) for value in log_w]
    return sum(weights) ** 2 / sum(w * w for w in weights)


def test_equal_ratios_give_n(tmp_path: Path) -> None:
    found = figures(tmp_path, log_ratios=[0.25])
    assert found["ess_tokens"].value == pytest.approx(4 * PER_GROUP)
    assert found["ess_tokens_share"].value == pytest.approx(1)
    # the product over a completion's tokens is not the same for different lengths
    step = [0.25 * length for length in LENGTHS] * 4
    assert found["ess_sequences"].value == pytest.approx(weights_ess(step), rel=1e-6)
    assert found["ess_sequences_share"].value == pytest.approx(weights_ess(step) / 16, rel=1e-6)


def test_different_ratios(tmp_path: Path) -> None:
    ratios = [0.0, 0.5, -0.25, 1.0]
    found = figures(tmp_path, log_ratios=ratios)
    tokens = [ratio for ratio, length in zip(ratios, LENGTHS, strict=True) for _ in range(length)] * 4
    assert found["ess_tokens"].value == pytest.approx(weights_ess(tokens), rel=1e-6)
    assert found["ess_tokens"].n == 8 * 80
    sequences = [ratio * length for ratio, length in zip(ratios, LENGTHS, strict=True)] * 4
    assert found["ess_sequences"].value == pytest.approx(weights_ess(sequences), rel=1e-6)
    assert found["ess_sequences_share_lowest"].value == pytest.approx(weights_ess(sequences) / 16, rel=1e-6)
    assert found["log_ratio_mean"].value == pytest.approx((5 * 0.5 + 8 * 0.25 + 4 * 1.0) / PER_GROUP, rel=1e-6)
    assert found["log_ratio_max"].value == pytest.approx(1.0)
    # sums over a completion: 0, 2.5, -2, 4; means: 0, 0.5, -0.25, 1
    assert found["sequence_ratio[product]"].value == pytest.approx(math.exp((0 + 2.5) / 2), rel=1e-5)
    assert found["sequence_ratio[geometric_mean]"].value == pytest.approx(math.exp((0 + 0.5) / 2), rel=1e-5)


def test_one_dominant_weight_tends_to_one_and_nothing_overflows(tmp_path: Path) -> None:
    # 16 completions a step, one of them with log w = 1000 on its only token
    found = figures(tmp_path, lengths=[1], log_ratios=[1000.0] + [0.0] * 15)
    assert found["ess_tokens"].value == pytest.approx(1)
    assert found["ess_sequences"].value == pytest.approx(1)
    assert found["ess_sequences_share_lowest"].value == pytest.approx(1 / 16)
    assert found["log_ratio_max"].value == pytest.approx(1000, rel=1e-6)


def test_common_ratio_of_a_thousand_still_gives_n(tmp_path: Path) -> None:
    found = figures(tmp_path, lengths=[1], log_ratios=[1000.0])
    assert found["ess_tokens"].value == pytest.approx(16)


def test_clip_fraction_is_of_the_ratio_outside_its_range(tmp_path: Path) -> None:
    # clip range 0.8 .. 1.2: log 1.2 = 0.1823, log 0.8 = -0.2231
    found = figures(tmp_path, log_ratios=[0.18, 0.19, -0.22, -0.23])
    assert found["clip_fraction"].value == pytest.approx((5 + 4) / PER_GROUP)
    assert found["clip_fraction"].numerator == 8 * 4 * 9


def test_binding_needs_a_separate_old_policy(tmp_path: Path) -> None:
    found = figures(tmp_path, log_ratios=[0.5])
    assert found["binding_clip_fraction"].value is None
    assert "1 by construction" in str(found["binding_clip_fraction"].reason)


def test_binding_is_on_the_side_of_the_advantage(tmp_path: Path) -> None:
    # two epochs make an old policy; rewards alternate 0, 1, so completions 0 and 2 have A < 0, 1 and 3 have A > 0
    task = {"inner_epochs": 2, "warmup_steps": 0}
    ratios = [0.5, 0.5, -0.5, -0.5]
    found = figures(tmp_path, task, log_ratios=ratios, log_ratio_per_lag=0.0, degenerate_every=0)
    # removed: A > 0 with r above (completion 1, 5 tokens), A < 0 with r below (completion 2, 8 tokens)
    assert found["binding_clip_fraction"].value == pytest.approx(13 / PER_GROUP)
    assert found["clip_fraction"].value == pytest.approx(1)


def test_degenerate_groups_bind_nothing(tmp_path: Path) -> None:
    found = figures(tmp_path, {"inner_epochs": 2}, log_ratios=[0.5], log_ratio_per_lag=0.0, degenerate_every=1)
    assert found["binding_clip_fraction"].value == 0


def test_tokens_without_a_behaviour_logprob_are_counted_and_left_out(tmp_path: Path) -> None:
    # every 4th completion (4 tokens) has none
    found = figures(tmp_path, unknown_every=4, log_ratios=[0.5])
    assert found["support_violations"].value == 8 * 4 * 4
    assert found["support_violations"].n == 8 * 80
    assert found["ess_tokens"].value == pytest.approx(4 * (PER_GROUP - 4))
    assert found["log_ratio_mean"].n == 8 * 4 * (PER_GROUP - 4)


def test_no_behaviour_logprob_at_all(tmp_path: Path) -> None:
    found = figures(tmp_path, unknown_every=1)
    assert found["support_violations"].value == 8 * 80
    for tag in ("ess_tokens", "log_ratio_mean", "clip_fraction", "mismatch_mean"):
        assert found[tag].value is None
        assert "behaviour log-prob" in str(found[tag].reason)


@pytest.mark.parametrize(("knob", "value"), [("temperature", 0.8), ("top_p", 0.9), ("top_k", 10), ("min_p", 0.05)])
def test_raw_softmax_under_truncation_is_misdeclared(tmp_path: Path, knob: str, value: float) -> None:
    found = figures(tmp_path, {knob: value}, logprob_kind="raw_softmax")
    assert found["behavior_policy_misdeclared"].value == 128
    assert found["ess_tokens"].value is None
    assert "misdeclared" in str(found["ess_tokens"].reason)


def test_raw_softmax_at_temperature_one_is_the_sampled_distribution(tmp_path: Path) -> None:
    found = figures(tmp_path, logprob_kind="raw_softmax")
    assert found["behavior_policy_misdeclared"].value == 0
    assert found["ess_tokens"].value == pytest.approx(80)


def test_top_k_is_flagged_where_the_trainer_models_temperature_alone(tmp_path: Path) -> None:
    found = figures(tmp_path, {"top_k": 10, "temperature": 0.8})
    assert found["decoding_not_modelled"].value == 128
    assert found["decoding_not_modelled[top_k]"].value == 128
    assert "decoding_not_modelled[temperature]" not in found
    assert found["behavior_policy_misdeclared"].value == 0
    assert found["mismatch_mean"].value is None
    assert "does not model the decoding" in str(found["mismatch_mean"].reason)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.floats(-800, 800), min_size=1, max_size=8), min_size=1, max_size=6))
def test_sums_of_runs_give_the_ess_of_each(runs: list[list[float]]) -> None:
    counts = np.array([len(run) for run in runs])
    flat = np.array([value for run in runs for value in run])
    found = np.exp(2 * log_sums(flat, counts) - log_sums(2 * flat, counts))
    assert found == pytest.approx([ess(np.array(run)) for run in runs], rel=1e-9)
    assert (found >= 1 - 1e-9).all()
    assert (found <= counts * (1 + 1e-9)).all()


def test_evidence_names_the_columns(tmp_path: Path) -> None:
    value = LogRatioMax().values(view(tmp_path))[0]
    assert value.evidence == "trained.trainer_logprobs, rollouts.behavior_logprobs"


def test_weights_past_what_a_float_holds_are_told_without_a_warning(tmp_path: Path) -> None:
    """Two batches ahead, and 400 in the logarithm for each update of lag: a weight of exp(800)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = figures(tmp_path, log_ratios=[0.0], log_ratio_per_lag=400.0, ahead=2)
    assert found["log_ratio_max"].value == pytest.approx(800)
    assert found["ess_tokens_share"].value == pytest.approx(1)
