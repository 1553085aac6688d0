"""Each rule of the audit on the smallest case that breaks it, beside one that holds; inputs of public reports first."""

from dataclasses import replace

import pytest

from harness.audit.quantities import QUANTITIES, Case, Observation, Where
from harness.audit.rule import findings
from harness.audit.rules import RULES

Numbers = dict[str, float]


def case(numbers: Numbers, earlier: Numbers | None = None, **facts: str) -> Case:
    """A case whose keys are quantities, or `quantity:part`."""
    seen = []
    for number, (key, value) in enumerate(numbers.items()):
        quantity, _, part = key.partition(":")
        assert quantity in QUANTITIES
        seen.append(Observation(quantity, value, Where("a.log", number + 1, key, 1), part))
    made = Case("a case", tuple(seen), facts)
    return replace(made, earlier=case(earlier)) if earlier else made


def found(one: Case) -> list[str]:
    return [finding.rule for finding in findings(one, RULES)]


BENCHMARK = {"packed_per_device": 2.0, "packed_length": 16384.0, "devices_declared": 8.0}
BROKEN: list[tuple[str, Case, Case]] = [
    (
        "stage_exceeds_step",
        case({"step_seconds": 10, "stage_seconds:a": 11}),
        case({"step_seconds": 10, "stage_seconds:a": 10}),
    ),
    (
        "parts_exceed_step",
        case({"step_seconds": 10, "stage_seconds:a": 6, "wait_seconds:w": 6}),
        case({"step_seconds": 10, "stage_seconds:a": 6, "wait_seconds:w": 4.0}),
    ),
    (  # verl#7049: 1,000,000 tokens, 100 s, 8 train and 8 rollout GPUs
        "devices_left_out",
        case({"total_tokens": 1e6, "step_seconds": 100, "tokens_per_second_per_device": 1250, "devices_declared": 16}),
        case({"total_tokens": 1e6, "step_seconds": 100, "tokens_per_second_per_device": 625, "devices_declared": 16}),
    ),
    (  # axolotl#3362: the total logged as a device's
        "devices_left_out",
        case(
            {"total_tokens": 131072, "step_seconds": 1.93, "tokens_per_second_per_device": 67913, "devices_declared": 8}
        ),
        case(
            {"total_tokens": 131072, "step_seconds": 1.93, "tokens_per_second_per_device": 8489, "devices_declared": 8}
        ),
    ),
    (
        "rate_is_not_its_counts",
        case({"total_tokens": 1000, "response_tokens": 600, "step_seconds": 10, "tokens_per_second": 300}),
        case({"total_tokens": 1000, "response_tokens": 600, "step_seconds": 10, "tokens_per_second": 60}),
    ),
    (  # prime-rl's trainer benchmarks: weights are written to a disk between two steps; unequal steps that explain it
        "rate_is_not_its_batch",
        case(BENCHMARK | {"step_seconds": 8.174, "tokens_per_second": 6113}),
        case(
            BENCHMARK
            | {"step_seconds": 3.743, "step_seconds_min": 3.679, "step_seconds_max": 3.871}
            | {"tokens_per_second": 68356, "tokens_per_second_min": 66608, "tokens_per_second_max": 69620}
        ),
    ),
    (  # prime-rl PR 2048: rollouts were in flight already
        "rate_of_a_wait",
        case({"step_seconds": 0.58, "tokens_per_second": 23525.9}, {"step_seconds": 7.47, "tokens_per_second": 1800}),
        case({"step_seconds": 6.9, "tokens_per_second": 1950}, {"step_seconds": 7.47, "tokens_per_second": 1800}),
    ),
    ("mfu_over_one", case({"mfu": 2.7381}), case({"mfu": 0.4})),  # NeMo-RL#955
    ("share_outside", case({"ess_share": 35}), case({"ess_share": 0.35})),
    (  # vllm#33625
        "memory_over_card",
        case({"memory_reserved": 198.68e9, "memory_card": 140e9}),
        case({"memory_reserved": 139e9, "memory_card": 140e9}),
    ),
    (
        "length_over_cap",
        case({"response_length_max": 4, "length_cap": 2}),
        case({"response_length_max": 2, "length_cap": 2}),
    ),
    ("negative_amount", case({"step_seconds": -1}), case({"step_seconds": 1})),
    ("logprob_positive", case({"logprob": 0.3}), case({"logprob": -0.3})),
    ("probabilities_do_not_add_up", case({"probability_sum": 1.148}), case({"probability_sum": 1.0})),
    (
        "counter_falls",
        case({"cumulative_tokens": 5}, {"cumulative_tokens": 9}),
        case({"cumulative_tokens": 9}, {"cumulative_tokens": 5}),
    ),
    (
        "counter_over_one_step",
        case({"cumulative_tokens": 1e6, "step_seconds": 10, "tokens_per_second": 1e5}, {"cumulative_tokens": 9e5}),
        case({"cumulative_tokens": 1e6, "step_seconds": 10, "tokens_per_second": 1e4}, {"cumulative_tokens": 9e5}),
    ),
    (
        "step_runs_back",
        case({"step_number": 203}, {"step_number": 249}),
        case({"step_number": 250}, {"step_number": 249}),
    ),
    ("rewards_all_zero", case({"reward_mean": 0, "reward_max": 0}), case({"reward_mean": 0, "reward_max": 1})),
    ("groups_without_spread", case({"degenerate_fraction": 1}), case({"degenerate_fraction": 0.9})),
    (
        "groups_without_spread",
        case({"advantage_max": 0, "advantage_min": 0}),
        case({"advantage_max": 1, "advantage_min": 0}),
    ),
    (
        "groups_without_spread",
        case({"reward_std": 0}),
        case({"reward_std": 0.1}),
    ),  # TRL 0.14
    ("all_clipped", case({"clipped_share": 1}), case({"clipped_share": 0.99})),
    (
        "ratio_one_with_lag",
        case({"lag_mean": 1, "ratio_max": 1}),
        case({"lag_mean": 0, "ratio_max": 1}),
    ),  # miles PR 1829
    ("lag_beyond_config", case({"lag_config": 0, "lag_max": 1}), case({"lag_config": 1, "lag_max": 1})),  # verl#4449
    ("ratios_after_truncation", case({"ratio_max": 2, "ratio_cap": 2}), case({"ratio_max": 1.9, "ratio_cap": 2})),
    ("logprob_exactly_zero", case({"logprob": 0}), case({"logprob": -1e-4})),  # SkyRL PR 354
    ("overlap_beyond_two", case({"overlap_gain": 2.77}), case({"overlap_gain": 2.77, "tail_gain": 1.5})),
    (
        "other_work",
        case({"response_length_mean": 12288, "response_length_of_other": 13343}),
        case({"response_length_mean": 12288, "response_length_of_other": 12720}),
    ),
    (  # prime-rl PR 1126: 5.2 or 7.8 GiB, by which of the two is read
        "allocated_over_reserved",
        case({"memory_allocated": 7.8e9, "memory_reserved": 5.2e9}),
        case({"memory_allocated": 5.2e9, "memory_reserved": 7.8e9}),
    ),
    (  # verl#7817: the widest of the batch taken for the limit
        "clipped_below_limit",
        case({"clipped_share": 0.5, "length_cap": 100, "response_length_max": 7}),
        case({"clipped_share": 0.0, "length_cap": 100, "response_length_max": 7}),
    ),
    (
        "clipped_below_limit",
        case({"clipped_share": 0.5, "length_cap": 100} | {f"response_length:{n}": n for n in (5, 7, 6, 3)}),
        case({"clipped_share": 0.25, "length_cap": 7} | {f"response_length:{n}": n for n in (5, 7, 6, 3)}),
    ),
    (
        "mean_outside_extremes",
        case({"reward_mean": 1.2, "reward_max": 1, "reward_min": 0}),
        case({"reward_mean": 1.0, "reward_max": 1, "reward_min": 0}),
    ),
    (
        "mean_outside_extremes",
        case({"response_length_mean": 5, "response_length_max": 4}),
        case({"response_length_mean": 4, "response_length_max": 4}),
    ),
    ("not_finite", case({"loss": float("nan")}), case({"loss": -0.0})),  # trl#5775
    (  # NeMo-RL#955: the total is one rank's
        "total_is_not_its_devices",
        case({"flops_per_second": 1e14, "flops_per_second_per_device": 1e14, "devices_declared": 8}),
        case({"flops_per_second": 8e14, "flops_per_second_per_device": 1e14, "devices_declared": 8}),
    ),
    (
        "steps_exceed_run",
        case({"run_seconds": 900, "steps": 10, "step_seconds": 100}),
        case({"run_seconds": 1010, "steps": 10, "step_seconds": 100}),
    ),
    (  # NeMo-RL PR 3955: a first fill of 300 s before a step of 60 s
        "time_outside_steps",
        case({"run_seconds": 360, "steps": 1, "step_seconds": 60}),
        case({"run_seconds": 360, "steps": 1, "step_seconds": 360}),
    ),
    ("ratios_after_truncation", case({"ratio_min": 0}), case({"ratio_min": 1e-9})),  # trl#5231
    (  # differences of at most 0.01 over 100 tokens cannot make a product of 7.39
        "ratio_beyond_differences",
        case({"ratio_max": 7.39, "logprob_difference_max": 0.01, "response_length_max": 100}),
        case({"ratio_max": 2.71, "logprob_difference_max": 0.01, "response_length_max": 100}),
    ),
    (  # verl#7155: one of 512 was lost
        "samples_missing",
        case({"samples": 511, "prompts": 64, "group_size": 8}),
        case({"samples": 512, "prompts": 64, "group_size": 8}),
    ),
    ("logprob_off_mask", case({"off_mask_logprob": 0.0}), case({"logprob": -0.1})),
    ("advantage_off_mask", case({"off_mask_advantage": 5.0}), case({"off_mask_advantage": 0.0})),  # trl#7024
    ("ids_changed", case({"ids_changed": 1}), case({"ids_changed": 0})),  # OpenRLHF#238
    (
        "out_of_family",
        case({"implied_sample_tokens": 2386, "prompt_of_family": 109, "response_length_mean": 974}),
        case({"implied_sample_tokens": 1084, "prompt_of_family": 109, "response_length_mean": 974}),
    ),
    (
        "near_family",
        case({"implied_sample_tokens": 6290, "prompt_of_family": 109, "response_length_mean": 5691}),
        case({"implied_sample_tokens": 5800, "prompt_of_family": 109, "response_length_mean": 5691}),
    ),
]


@pytest.mark.parametrize(("name", "broken", "sound"), BROKEN, ids=[name for name, _, _ in BROKEN])
def test_a_rule(name: str, broken: Case, sound: Case) -> None:
    assert found(broken) == [name]
    assert found(sound) == []
    (finding,) = findings(broken, RULES)
    assert finding.evidence
    assert finding.would_be_true_if
    assert finding.source
    assert finding.as_dict()["file"] == "a.log"


def test_every_rule_is_here() -> None:
    assert {name for name, _, _ in BROKEN} == {rule.name for rule in RULES}
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_rules_without_their_numbers_are_silent() -> None:
    assert list(findings(case({}), RULES)) == []


def test_the_joint_rate_of_two_steps() -> None:
    """prime-rl PR 2048: (128 x 104.9 + 128 x 104.3) tokens in 8.05 s are 3,326 tokens/s."""
    slow, fast = 128 * 104.9 / 7.47, 128 * 104.3 / 0.58
    one = case({"step_seconds": 0.58, "tokens_per_second": fast}, {"step_seconds": 7.47, "tokens_per_second": slow})
    (finding,) = findings(one, RULES)
    assert "3326 tokens/s" in finding.would_be_true_if
