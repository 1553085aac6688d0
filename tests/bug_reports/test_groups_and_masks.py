"""Reports about ids, masks, advantages and groups: what was trained on, and whether it taught anything (A19 to A22)."""

import json
import math
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from adapters.reference.advantages import group_advantages
from adapters.reference.samples import Sample, assign_advantages
from adapters.reference.settings import Objective
from harness.audit.own import cases_of_cell, own_findings
from harness.audit.rule import Finding, findings
from harness.audit.rules import RULES
from harness.audit.tables import read_table
from harness.contract import rollout_refusals
from harness.contract.writer import to_batch
from harness.task.verifier import Verdict, _verdict
from tests.adapters.reference.groups import sample
from tests.audit.test_own import measured
from tests.bug_reports.toys import SMALL, cell
from tests.ledgers import rollout
from tests.measure.loops import figures, loop_cell

OBJECTIVE = Objective(0.2, 0.2, "token_mean", 0.0, "group", 1, 1e-4, False)


def of_dump(folder: Path, *records: dict[str, Any]) -> list[Finding]:
    """What is found in lines of JSON."""
    path = folder / "dump.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return [finding for row in read_table(path) for finding in findings(row, RULES)]


FORCED = [
    ([11, 12, 13], [11, 12, 2]),
    ([5, 6, 7, 8], [5, 6, 7, 0]),
    ([4, 9], [4, 9, 2]),
    ([4, 9, 9], [4, 9]),
    ([1, 2, 3, 4], [2, 1, 3, 4]),
    ([31, 32, 33, 34, 35], [31, 32, 33, 34, 151645]),
]


@pytest.mark.parametrize(("sampled", "stored"), FORCED)
def test_a19_a_forced_end_was_not_sampled(tmp_path: Path, sampled: list[int], stored: list[int]) -> None:
    """OpenRLHF#238, 2024-03-08: the last token of a cut response was overwritten by the end of sequence."""
    (finding,) = of_dump(tmp_path, {"sampled_tokens": sampled, "response_tokens": stored})
    assert finding.rule == "ids_changed"
    clean = {"sampled_tokens": sampled, "response_tokens": sampled, "logprobs": [-0.5] * len(sampled)}
    assert of_dump(tmp_path, clean) == []
    # In our own record a token that the policy did not sample is masked out and has no log-probability of its own.
    forced: dict[str, Any] = {
        "response_tokens": [*stored[:-1], 1],
        "policy_mask": [0] * 3 + [1] * (len(stored) - 1) + [0],
    }
    known = forced | {"behavior_logprobs": [-0.5] * len(stored), "stop_reason": "length"}
    assert [r.rule for r in rollout_refusals(to_batch("rollouts", [rollout(**known)]))] == ["logprob_off_policy"]
    honest = known | {"behavior_logprobs": [-0.5] * (len(stored) - 1) + [None]}
    assert rollout_refusals(to_batch("rollouts", [rollout(**honest)])) == []


PADDED = [
    ([1.5, 1.0, 2.0, 2.0], 2),
    ([1.0, 1.0], 1),
    ([0.0, 3.0, -1.0], 2),
    ([0.5, 0.5, 0.5, 7.0, 7.0], 3),
    ([2.0, 0.1], 1),
    ([-1.0, -1.0, -1.0, -9.0], 3),
]


@pytest.mark.parametrize(("rewards", "real"), PADDED)
def test_a20_padding_in_advantages(tmp_path: Path, rewards: list[float], real: int) -> None:
    """trl#7024 and PR#7044, 2026-09-02: rewards of padding were summed into what came before them: 6.5, 5, 4, 2 where
    2.5, 1, 0, 0 are right."""
    mask = [1] * real + [0] * (len(rewards) - real)
    masked = [reward * sampled for reward, sampled in zip(rewards, mask, strict=True)]
    wrong, right = (list(accumulate(reversed(values)))[::-1] for values in (rewards, masked))
    assert wrong[0] != right[0]
    (finding,) = of_dump(tmp_path, {"advantages": wrong, "response_mask": mask})
    assert finding.rule == "advantage_off_mask"
    assert of_dump(tmp_path, {"advantages": right, "response_mask": mask}) == []


def _group(rewards: list[float | None]) -> list[Sample]:
    """A group whose verdicts are what the verifier makes of such totals; None is one that raised."""
    verdicts = [_verdict(reward, {} if reward is not None else "raised", 0, 1) for reward in rewards]
    return [sample(f"p0.b0.g{place}", 3, verdict=verdict) for place, verdict in enumerate(verdicts)]


NAN = math.nan
INVALID: list[list[float | None]] = [
    [1.0, NAN, NAN, NAN],
    [1.0, 0.0, NAN, NAN],
    [NAN, NAN, NAN, NAN],
    [0.5, None, 0.5, math.inf],
    [None, 1.0, -math.inf, 0.0],
    [2.0, 1.0, 0.0, NAN],
]


@pytest.mark.parametrize("rewards", INVALID, ids=str)
def test_a21_invalid_rewards_in_a_group(tmp_path: Path, rewards: list[float | None]) -> None:
    """trl PR#5773 and #5775, 2026-05-15: of a group with one valid reward the deviation is undefined and the loss not a
    number. A lone valid one teaches nothing, invalid ones are left out, the group counts as uninformative."""
    group = _group(rewards)
    assign_advantages(group, OBJECTIVE)
    valid = [reward for reward in rewards if reward is not None and math.isfinite(reward)]
    assert [one.reward for one in group if one.reward is not None] == valid
    given = [one.advantage for one in group if one.advantage is not None]
    assert all(math.isfinite(advantage) for advantage in given)
    assert given == pytest.approx(group_advantages(valid, "group", 1, 1e-4) if len(valid) > 1 else [])
    assert not any(one.group_complete for one in group)
    dropped = [one.drop_reason(mask_truncated=False) for one in group]
    assert [reason is None for reason in dropped] == [one.advantage is not None for one in group]
    totals = [one.reward for one in group]
    status = [one.status for one in group]
    complete = [False] * 4
    seen = figures(loop_cell(tmp_path, {"reward_total": totals, "status": status, "group_complete": complete}))
    assert seen["informative_updates"].value == 0
    assert seen["degenerate_fraction"].value is None
    assert seen["cost_device_seconds"].value == math.inf


def test_a21_a_lone_valid_reward_has_advantage_0() -> None:
    """trl PR#5773: and not one that is divided by no deviation."""
    assert [group_advantages([reward], std, 1, 1e-4) for reward in (1.0, -3.0) for std in ("group", "none")] == [
        [0.0]
    ] * 4
    assert _verdict(NAN, {}, 0, 1) == Verdict(None, status="error", detail="the reward is nan", t_start=0, t_end=1)


@pytest.mark.parametrize("key", ["loss", "grad_norm", "reward_mean", "advantage_max", "reward_std", "ratio_max"])
def test_a21_what_is_no_number_is_told(tmp_path: Path, key: str) -> None:
    """trl#5775: a loss that is not a number, in a log of another program."""
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"id": "step 3", "{key}": NaN}}\n{{"id": "step 4", "{key}": 0.5}}\n', encoding="utf-8")
    found = [(finding.case, finding.rule) for row in read_table(path) for finding in findings(row, RULES)]
    assert found == [("step 3", "not_finite")]


FLAT = [
    ((0.0,) * 4),
    ((1.0,) * 4),
    ((0.0, 0.0, 1.0, 1.0)),
    ((1.0, 1.0, 0.0, 0.0)),
    ((0.3, 0.3, 0.7, 0.7)),
    ((-1.0,) * 4),
]


@pytest.mark.parametrize("rewards", FLAT, ids=str)
def test_a22_groups_without_spread(tmp_path: Path, rewards: tuple[float, ...]) -> None:
    """trl PR#6365 and #7068, 2026-07..09: groups of equal rewards stay in the denominator and look like work. A spread
    is one of a group and not of the batch: two groups that differ from each other teach nothing either."""
    seen = figures(loop_cell(tmp_path, {"reward_total": list(rewards)}))
    assert seen["degenerate_fraction"].value == 1
    assert seen["informative_updates"].value == 0
    assert seen["cost_device_seconds"].value == math.inf
    assert seen["informative_groups_per_second"].value == 0
    for place in (0, 2):
        assert group_advantages(list(rewards[place : place + 2]), "group", 1, 1e-4) == [0.0, 0.0]


@pytest.mark.parametrize("cap", [256, 8, 16, 4, 64, 2])
def test_a22_all_cut_and_all_alike_looks_alive(tmp_path: Path, cap: int) -> None:
    """autocontext PR#1067, 2026-06-11: mean length 256, the limit, all of it cut, every reward 0, loss and gradient 0:
    an alarm, not a step."""
    dead = measured(tmp_path, SMALL | {"max_tokens": cap}, lengths=[cap], degenerate_every=1, zero_gradient_every=1)
    assert {finding.rule for finding in own_findings(cases_of_cell(dead))} >= {"all_clipped", "groups_without_spread"}
    assert dead.figures["informative_updates"] == 0
    assert dead.figures["cost_device_seconds"] == math.inf
    assert cell(tmp_path / "alive", {"max_tokens": cap + 1}, lengths=[cap])["truncated_share"].value == 0
