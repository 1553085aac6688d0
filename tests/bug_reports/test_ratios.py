"""Reports about importance ratios: their names, their lengths, their truncation, their means (A4 to A6, A9, A10)."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.audit.own import cases_of_cell, own_findings
from harness.theory.ess import ess
from tests.audit.test_own import measured
from tests.bug_reports.toys import SMALL, cell, found

SEQUENCES = [  # tokens, difference of each, product, geometric mean
    (80, math.log(0.569) / 80, 0.569, 0.993),
    (2000, 0.001, 7.389, 1.001),
    (100, -0.01, 0.3679, 0.990),
    (1, 0.5, 1.6487, 1.6487),
    (64, 0.0, 1.0, 1.0),
    (500, -0.002, 0.3679, 0.998),
]


@pytest.mark.parametrize(("tokens", "gap", "product", "mean"), SEQUENCES)
def test_a4_a_product_is_no_geometric_mean(
    tmp_path: Path, tokens: int, gap: float, product: float, mean: float
) -> None:
    """trl#5814 and PR#5815, 2026-05-22: one set of differences a token, a ratio of 0.569 by the sum and of 0.993 by the
    mean; both are printed, each by its name."""
    seen = cell(tmp_path, {"max_tokens": tokens}, lengths=[tokens], log_ratios=[gap])
    assert seen["sequence_ratio[product]"].value == pytest.approx(product, rel=1e-3)
    assert seen["sequence_ratio[geometric_mean]"].value == pytest.approx(mean, rel=1e-3)


def test_a4_noise_without_a_mean_grows_with_the_root_of_the_length() -> None:
    """trl#5814: differences of standard deviation 0.02 over 2,000 tokens: 0.894 of their sum."""
    assert 0.02 * math.sqrt(2000) == pytest.approx(0.894, abs=1e-3)


@pytest.mark.parametrize(
    ("gap", "tokens"), [(0.012, 100), (0.012, 90), (0.02, 64), (0.005, 400), (0.05, 16), (0.001, 1000)]
)
def test_a5_an_explosion_is_one_of_length(tmp_path: Path, gap: float, tokens: int) -> None:
    """trl#4772, 2026-05-26: a mean difference of 0.012 over 100 tokens makes 3.32, over the cap of 3: the ratios of
    long completions leave the window although no token differs more."""
    series = measured(tmp_path, SMALL | {"max_tokens": tokens}, lengths=[tokens, 8], log_ratios=[gap]).series
    by_length = series["log_ratio"]
    short, long = 0, len(by_length["label"]) - 1
    assert by_length["mean_abs"][long] == pytest.approx(by_length["mean_abs"][short], rel=1e-3)
    assert by_length["p50"][long] == pytest.approx(gap, rel=1e-3)
    assert by_length["sum_p50"] == pytest.approx([gap * 8, gap * tokens], rel=1e-3)
    assert (by_length["sum_p95"][long] > math.log(3)) == (gap * tokens > math.log(3))


@pytest.mark.parametrize("gaps", [(0.012, -0.012), (0.1, 0.1), (0.3, -0.1), (0.0, 0.02), (-0.5, 0.1), (0.01, 0.01)])
def test_a5_mean_difference_times_length_is_a_bound_only(gaps: tuple[float, float]) -> None:
    """trl#4772: the signed sum may be far below it, and no ratio may be above it."""
    differences = np.tile(gaps, 50)
    product = math.exp(differences.sum())
    apart = {"logprob_difference_max": float(np.abs(differences).max()), "response_length_max": 100.0}
    bound = math.exp(apart["logprob_difference_max"] * 100)
    assert product <= math.exp(np.abs(differences).mean() * 100) * (1 + 1e-9) <= bound * (1 + 1e-6)
    assert not found(apart | {"ratio_max": product})
    assert list(found(apart | {"ratio_max": bound * 1.5})) == ["ratio_beyond_differences"]


WINDOWS = [
    ([0.4, 0.8, 6.0], 0.5, 5.0),
    ([0.1, 1.0, 1.1], 0.5, 2.0),
    ([3.0, 1.0, 0.9, 0.2], 0.5, 2.0),
    ([0.99, 1.01, 12.0], 0.9, 10.0),
    ([0.3, 0.3, 1.0, 1.0], 0.5, 1.5),
    ([1.2, 9.0], 0.8, 3.0),
]


@pytest.mark.parametrize(("ratios", "low", "high"), WINDOWS)
def test_a6_ratios_that_were_masked(ratios: list[float], low: float, high: float) -> None:
    """trl#5231, 2026-03-06: what is logged is what was applied; its ESS is not that of the ratios as measured."""
    applied = [ratio if low <= ratio <= high else 0.0 for ratio in ratios]
    numbers = {"ratio_max": max(applied), "ratio_mean": sum(applied) / len(applied), "ratio_min": min(applied)}
    assert list(found(numbers)) == ["ratios_after_truncation"]
    assert not found({"ratio_max": max(ratios), "ratio_min": min(ratios), "ratio_cap": high})
    raw = ess(np.log(ratios))
    assert raw == pytest.approx(sum(ratios) ** 2 / sum(ratio**2 for ratio in ratios))
    with np.errstate(divide="ignore"):
        assert ess(np.log(applied)) != pytest.approx(raw)


def test_a6_numbers_of_the_report(tmp_path: Path) -> None:
    """trl#5231: 0.4, 0.8 and 6 in a window of 0.5 to 5: largest 0.8, mean 0.267, ESS 0.333; raw 0.470 of n."""
    with np.errstate(divide="ignore"):
        assert ess(np.log([0.0, 0.8, 0.0])) / 3 == pytest.approx(0.333, abs=1e-3)
    ratios = [0.4, 0.8, 6.0]
    assert ess(np.log(ratios)) / 3 == pytest.approx(0.470, abs=1e-3)
    gaps = [math.log(ratio) for ratio in ratios]
    seen = cell(tmp_path, {"group_size": 3}, lengths=[1], log_ratios=gaps)
    assert seen["ess_sequences_share"].value == pytest.approx(0.470, abs=1e-3)


@pytest.mark.parametrize("cap", [0.8, 2.0, 3.0, 5.0, 1.28, 10.0])
def test_a6_ratios_that_were_truncated(cap: float) -> None:
    """trl#5231: the largest is the cap itself."""
    assert list(found({"ratio_max": cap, "ratio_cap": cap})) == ["ratios_after_truncation"]


def _gap(k3: float) -> float:
    """The log-ratio above 0 whose k3 is that."""
    low, high = 0.0, 5.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.expm1(middle) - middle < k3 else (low, middle)
    return low


SAMPLES = [
    ((1000, 0.001), (10, 0.1)),
    ((10, 0.001), (1000, 0.1)),
    ((50, 0.01), (50, 0.02)),
    ((400, 0.0005), (4, 0.5)),
    ((7, 0.03), (70, 0.003)),
    ((1, 1.0), (99, 0.0)),
]


@pytest.mark.parametrize("samples", SAMPLES)
def test_a9_a_mean_of_means_is_no_mean_of_tokens(tmp_path: Path, samples: tuple[tuple[int, float], ...]) -> None:
    """prime-rl PR#2478, 2026-05-12: one key was a mean over samples of their means and another a mean over tokens; of
    1,000 tokens at 0.001 and 10 at 0.1 they are 0.0505 and 0.00198."""
    lengths, sizes = zip(*samples, strict=True)
    task = {"max_tokens": max(lengths), "group_size": 2}
    seen = cell(tmp_path, task, lengths=list(lengths), log_ratios=[_gap(size) for size in sizes])
    tokens = sum(length * size for length, size in samples) / sum(lengths)
    assert seen["mismatch_k3"].value == pytest.approx(tokens, rel=2e-2)
    assert seen["mismatch_k3_per_completion"].value == pytest.approx(sum(sizes) / 2, rel=2e-2)


STALE = [
    {"lag_mean": 1.0, "ratio_max": 1.0},
    {"lag_max": 3.0, "ratio_mean": 1.0, "ratio_min": 1.0, "ratio_max": 1.0},
    {"lag_mean": 0.5, "ratio_mean": 1.0 + 5e-8},
    {"lag_mean": 2.0, "logprob_difference_max": 0.0},
    {"lag_max": 8.0, "ratio_min": 1.0},
    {"lag_mean": 1.0, "ratio_max": 1.0, "logprob_difference_max": 0.0},
]


@pytest.mark.parametrize("numbers", STALE, ids=str)
def test_a10_a_ratio_of_one_on_stale_data(numbers: dict[str, float]) -> None:
    """miles PR#1829, 2026-07-27: the old log-probabilities were recomputed with the policy that trains, so that every
    ratio was 1 while the versions said one update of lag: the denominator is not the behaviour policy."""
    assert "ratio_one_with_lag" in found(numbers)
    assert not found({name: 0.0 if name.startswith("lag") else value for name, value in numbers.items()})


def test_a10_in_a_ledger_of_ours(tmp_path: Path) -> None:
    """miles PR#1829: planted in the fake loop, whose log-probabilities then do not change with the lag."""
    stale = measured(tmp_path / "a", SMALL | {"steps": 6}, ahead=1, log_ratio_per_lag=0.0)
    assert "ratio_one_with_lag" in {finding.rule for finding in own_findings(cases_of_cell(stale))}
    sound = measured(tmp_path / "b", SMALL | {"steps": 6}, ahead=1, log_ratio_per_lag=0.1)
    assert "ratio_one_with_lag" not in {finding.rule for finding in own_findings(cases_of_cell(sound))}
    assert "lag_beyond_config" in {
        f.rule for f in own_findings(cases_of_cell(replace(sound, given={"lag_config": 0.0})))
    }


WEIGHTS = [
    ([1.0] * 4, [10.0]),
    ([1.0] * 8, [3.0]),
    ([2.0] * 2, [0.5]),
    ([1.0], [1.0]),
    ([5.0] * 3, [1.0]),
    ([0.1] * 6, [4.0]),
]


@pytest.mark.parametrize(("first", "second"), WEIGHTS)
def test_a26_an_ess_says_of_what(tmp_path: Path, first: list[float], second: list[float]) -> None:
    """miles PR#1000, 2026-04-17 (beside torchrl#1708): the mean over samples of each one's ESS is 1 where one sample
    carries nearly all the weight; of all tokens together it is not."""
    pooled = first + second
    each = [ess(np.log(part)) / len(part) for part in (first, second)]
    assert sum(each) / 2 == pytest.approx(1.0)
    gaps = [math.log(first[0]), math.log(second[0])]
    seen = cell(tmp_path, {"group_size": 2}, lengths=[len(first), len(second)], log_ratios=gaps)
    right = sum(pooled) ** 2 / (len(pooled) * sum(weight**2 for weight in pooled))
    assert seen["ess_tokens_share"].value == pytest.approx(right, rel=1e-5)
    assert "token" in seen["ess_tokens_share"].tag
    products = [first[0] ** len(first), second[0]]
    shares = sum(products) ** 2 / (2 * sum(product**2 for product in products))
    assert seen["ess_sequences_share"].value == pytest.approx(shares, rel=1e-5)


def test_a26_numbers_of_the_report() -> None:
    """miles PR#1000: weights 1, 1, 1, 1 and 10: 0.377 pooled, 0.9 where they are truncated at 2."""
    weights = np.array([1, 1, 1, 1, 10.0])
    assert ess(np.log(weights)) / 5 == pytest.approx(0.377, abs=1e-3)
    assert ess(np.log(np.minimum(weights, 2))) / 5 == pytest.approx(0.9)
