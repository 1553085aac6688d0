"""Reports about log-probabilities: which distribution they are of, and of which tokens (A1, A2, A3, A7, A8)."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from harness.audit.rule import findings
from harness.audit.rules import RULES
from harness.audit.tables import read_table
from harness.contract import rollout_refusals
from harness.contract.writer import to_batch
from harness.measure.api import MeasureContext, measure_cell
from tests.bug_reports.toys import cell, found, kept_mass, log_softmax
from tests.ledgers import lawful_cell, rollout
from tests.report.runs import TASK

AT_TEMPERATURE = [
    ([1.0, 0.0], 0.6, 0),
    ([2.0, 0.0, -1.0], 0.7, 1),
    ([0.5, 0.1, 0.0], 1.5, 2),
    ([3.0, 2.0, 1.0, 0.0], 0.8, 3),
    ([0.0, 0.2], 0.3, 1),
    ([1.0, 2.0, 3.0], 2.0, 0),
]


@pytest.mark.parametrize(("logits", "temperature", "token"), AT_TEMPERATURE)
def test_a1_logprobs_not_of_the_distribution_that_was_sampled(
    tmp_path: Path, logits: list[float], temperature: float, token: int
) -> None:
    """trl#4159, 2025-09-28: the engine gave log-probabilities of the raw softmax, the trainer divided its logits by the
    temperature, and the first ratio was far from 1 with the same weights on both sides."""
    raw, sampled = log_softmax(logits)[token], log_softmax(logits, temperature)[token]
    task = {"temperature": temperature}
    wrong = cell(tmp_path / "raw", task, log_ratios=[sampled - raw], logprob_kind="raw_softmax")
    assert wrong["behavior_policy_misdeclared"].value == 8
    for name in ("mismatch_mean", "log_ratio_mean", "ess_tokens", "ess_sequences", "sequence_ratio[product]"):
        assert wrong[name].value is None
        assert "misdeclared" in str(wrong[name].reason)
    assert wrong["lag_max"].value == 0
    right = cell(tmp_path / "converted", task, log_ratios=[0.0])
    assert right["mismatch_max"].value == 0
    assert right["behavior_policy_misdeclared"].value == 0


def test_a1_numbers_of_the_report() -> None:
    """trl#4159: two logits 1 and 0 at temperature 0.6: a ratio of 1.151 without any lag."""
    raw, sampled = log_softmax([1.0, 0.0])[0], log_softmax([1.0, 0.0], 0.6)[0]
    assert (raw, sampled) == pytest.approx((-0.3133, -0.1730), abs=1e-4)
    assert math.exp(sampled - raw) == pytest.approx(1.151, abs=1e-3)


@pytest.mark.parametrize(("logits", "temperature", "token"), AT_TEMPERATURE)
def test_a2_logprobs_divided_by_the_temperature(logits: list[float], temperature: float, token: int) -> None:
    """prime-rl#697, 2025-08-08: a mended version divided the log-probability itself; such numbers are of no
    distribution, since temperature acts on logits."""
    divided = [value / temperature for value in log_softmax(logits)]
    total = math.fsum(math.exp(value) for value in divided)
    assert list(found({"probability_sum": total})) == ["probabilities_do_not_add_up"]
    right = log_softmax(logits, temperature)
    assert not found({"probability_sum": math.fsum(math.exp(value) for value in right), "logprob": right[token]})


def test_a2_numbers_of_the_report() -> None:
    """prime-rl#697: -0.5221 in place of -0.1730, a ratio of 1.418."""
    divided = log_softmax([1.0, 0.0])[0] / 0.6
    assert divided == pytest.approx(-0.5221, abs=1e-3)
    assert math.exp(log_softmax([1.0, 0.0], 0.6)[0] - divided) == pytest.approx(1.418, abs=1e-3)


TOY = (0.5, 0.3, 0.15, 0.05)
DECODINGS = [{"top_p": 0.8}, {"top_p": 0.95}, {"top_p": 0.5}, {"top_k": 1}, {"top_k": 3}, {"min_p": 0.2}]


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
def test_a3_truncated_decoding_is_a_bias_of_its_own(tmp_path: Path, decoding: dict[str, float]) -> None:
    """trl#6789, 2026-08-18 (alike in verl and SkyRL; trl#6945, 2026-08-27): with top-p, top-k or min-p the engine
    renormalises over what is left, the trainer does not, and every token's ratio is the mass S that was left."""
    mass = kept_mass(TOY, **decoding)  # type: ignore[arg-type]
    seen = cell(tmp_path, decoding, log_ratios=[math.log(mass)])
    assert seen["decoding_log_mass"].value == pytest.approx(math.log(mass), rel=1e-6)
    assert seen["decoding_not_modelled"].value == 8
    for name in ("mismatch_mean", "mismatch_k3", "ess_sequences", "ess_sequences_share"):
        assert seen[name].value is None
        assert "does not model the decoding" in str(seen[name].reason)


@pytest.mark.parametrize("mass", [0.95, 0.9, 0.8, 0.1712, 0.1084])
def test_a3_numbers_of_the_report(tmp_path: Path, mass: float) -> None:
    """trl#6789: what was left at top-p 0.95, 0.9 and 0.8, top-k 50 and 20; over 100 tokens 0.8 makes 2e-10."""
    seen = cell(tmp_path, {"top_p": 0.9}, log_ratios=[math.log(mass)])
    assert math.exp(seen["decoding_log_mass"].value or 0.0) == pytest.approx(mass, rel=1e-6)
    assert math.log(0.5) - math.log(0.5 / kept_mass(TOY, top_p=0.8)) == pytest.approx(math.log(0.8))
    assert math.exp(100 * math.log(0.8)) == pytest.approx(2e-10, rel=0.05)


def test_a3_nothing_left_out_is_no_bias(tmp_path: Path) -> None:
    """trl#6789: at top-p 1 the ratio is 1."""
    seen = cell(tmp_path, {"top_p": 1.0})
    assert seen["decoding_log_mass"].value is None
    assert seen["mismatch_max"].value == 0
    assert seen["ess_sequences_share"].value == pytest.approx(1)


@pytest.mark.parametrize("temperature", [0.7, 0.5, 0.9, 1.2, 1.7, 0.2])
def test_a7_correlation_across_conventions(tmp_path: Path, temperature: float) -> None:
    """verl#4162, 2025-11-17: agreement of the two sides was computed between scaled and unscaled log-probabilities, and
    was below 1 with identical weights."""
    positions = [[1.0, 0.0, 0.5], [2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.2, 0.1, 0.0]]
    engine = [log_softmax(logits)[0] for logits in positions]
    trainer = [log_softmax(logits, temperature)[0] for logits in positions]
    probabilities = np.exp([engine, trainer])
    assert np.corrcoef(probabilities)[0, 1] < 1 - 1e-6
    gaps = [ours - theirs for ours, theirs in zip(trainer, engine, strict=True)]
    wrong = cell(tmp_path / "w", {"temperature": temperature}, log_ratios=gaps, logprob_kind="raw_softmax")
    assert "misdeclared" in str(wrong["mismatch_mean"].reason)
    right = cell(tmp_path / "r", {"temperature": temperature}, log_ratios=[0.0])
    assert right["mismatch_max"].value == 0


MASKS = [(1, 1, 0, 0), (1, 0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 0), (1, 0, 1, 0), (0, 1, 0, 1)]


@pytest.mark.parametrize("mask", MASKS)
def test_a8_observations_have_no_behaviour_logprob(tmp_path: Path, mask: tuple[int, ...]) -> None:
    """SkyRL PR 354, 2025-09-26: tokens of a tool carried 0.0 as their log-probability, and a mean over all tokens took
    that for a probability of 1."""
    stored = [-0.5 if sampled else 0.0 for sampled in mask]
    whole = [0, 0, 0, *mask]
    poisoned = rollout(policy_mask=whole, behavior_logprobs=stored)
    assert {refusal.rule for refusal in rollout_refusals(to_batch("rollouts", [poisoned]))} == {"logprob_off_policy"}
    clean = [-0.5 if sampled else None for sampled in mask]
    ledger = lawful_cell(tmp_path, policy_mask=whole, behavior_logprobs=clean)
    context = MeasureContext(TASK, 0)
    values = {value.name: value for value in measure_cell(ledger, context)}
    assert values["log_ratio_max"].n == 2 * 4
    assert values["log_ratio_max"].value == 0
    dump = tmp_path / "dump.jsonl"
    lines = [{"logprobs": stored, "response_mask": mask}, {"logprobs": [-0.5, -0.5], "response_mask": [1, 1]}]
    dump.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (finding,) = [one for row in read_table(dump) for one in findings(row, RULES)]
    assert (finding.rule, finding.where.line) == ("logprob_off_mask", 1)


def test_a8_numbers_of_the_report() -> None:
    """SkyRL PR 354: two tokens that differ by 0.01 and two placeholders: 0.405 of all, 0.01 of the policy's own."""
    engine, trainer, mask = np.array([0.5, 0.5, 1, 1]), np.array([0.51, 0.51, 0.2, 0.2]), np.array([1, 1, 0, 0])
    assert np.abs(engine - trainer).mean() == pytest.approx(0.405)
    assert np.abs(engine - trainer)[mask == 1].mean() == pytest.approx(0.01)
