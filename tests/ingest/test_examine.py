"""`rlaxes audit` from end to end: real logs, published tables, what is neither."""

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.audit.rules import RULES
from harness.cli import app
from harness.errors import UserError
from harness.ingest.examine import examine
from tests import DATA

LOGS = DATA / "real_logs" / "verl"


def audit(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", *words])
    return done.exit_code, done.stdout


def test_real_logs_of_verl() -> None:
    done = examine([str(LOGS)])
    found = {(Path(f.where.file).stem.removeprefix("verl_")[:5], f.rule, f.where.step) for f in done.findings}
    assert found == {
        ("issue", "mfu_over_one", 2),
        ("issue", "groups_without_spread", 83),
        ("issue", "step_runs_back", 1),
        ("issue", "step_runs_back", 34),
        ("ppo_g", "rewards_all_zero", 1),
    }
    assert done.warnings == []
    assert set(done.files.values()) == {"verl console"}


def test_real_logs_of_trl() -> None:
    done = examine([str(DATA / "real_logs" / "trl")])
    found = Counter((Path(f.where.file).name[:20], f.rule, f.where.step) for f in done.findings)
    steps = {rule: {step for (_, name, step) in found if name == rule} for _, rule, _ in found}
    assert found[("trainer_state_trl0.1", "rewards_all_zero", 1)] == 1
    assert sum(n for (file, rule, _), n in found.items() if (file[-3:], rule) == ("0.1", "groups_without_spread")) == 64
    assert steps["all_clipped"] == {230}
    assert steps.keys() == {"rewards_all_zero", "groups_without_spread", "all_clipped"}


FOUND = {
    ("areal/areal_stats_lines", "rewards_all_zero"),
    ("areal/areal_stats_lines", "step_runs_back"),
    ("nemo_rl/nemo_rl_issue_pastes", "mfu_over_one"),
    ("openrlhf/openrlhf_0.11.2_async_8_rounds", "all_clipped"),
    ("openrlhf/openrlhf_0.11.2_sync_4_rounds", "rewards_all_zero"),
    ("openrlhf/openrlhf_0.11.2_sync_4_rounds", "groups_without_spread"),
    ("prime_rl/prime_rl_console_lines", "rate_of_a_wait"),
    ("prime_rl/prime_rl_console_lines", "step_runs_back"),
    ("prime_rl/prime_rl_trainer_benchmark_baselines_2026-01", "rate_is_not_its_batch"),
    ("trl/trainer_state_trl0.14_unsloth_2025-02_250entries", "groups_without_spread"),
    ("trl/trainer_state_trl0.14_unsloth_2025-02_250entries", "rewards_all_zero"),
    ("trl/trainer_state_trl0.2x_checkpoint400_2026-02", "all_clipped"),
    ("trl/trainer_state_trl0.2x_checkpoint500_2026-02", "all_clipped"),
    ("trl/trainer_state_vllm_sampling_excerpts", "groups_without_spread"),
    ("trl/trl_issue_pastes", "groups_without_spread"),
    ("trl/trl_issue_pastes", "rewards_all_zero"),
    ("verl/verl_issue_pastes", "groups_without_spread"),
    ("verl/verl_issue_pastes", "mfu_over_one"),
    ("verl/verl_issue_pastes", "step_runs_back"),
    ("verl/verl_ppo_gsm8k_notebook_2025-01", "rewards_all_zero"),
}
"""Every rule that finds something in a file of public logs, each looked at: results/2026-11-30/public. In files of
several pastes, step numbers do run back."""


def test_no_public_log_is_accused_of_anything_else() -> None:
    done = examine([str(DATA / "real_logs")])
    files = {name.removeprefix(f"{DATA}/real_logs/") for name in done.files}
    assert len(files) >= 25
    found = {(f.where.file.removeprefix(f"{DATA}/real_logs/").rsplit(".", 1)[0], f.rule) for f in done.findings}
    assert found == FOUND


def test_of_many_findings_of_one_rule_a_few_are_printed() -> None:
    path = DATA / "real_logs/trl/trainer_state_trl0.14_unsloth_2025-02_250entries.json"
    _, printed = audit(str(path))
    assert printed.count("suspect:") == 6
    assert "and 61 more of this rule in this file" in printed


def test_the_card_that_a_log_does_not_name() -> None:
    done = examine([str(LOGS / "verl_issue_pastes.log")], {"memory_card": 141e9})
    assert {f.where.step for f in done.findings if f.rule == "memory_over_card"} == {60}


def test_the_command_prints_findings_and_ends_with_1() -> None:
    code, printed = audit(str(DATA / "published_tables.json"))
    assert code == 1
    assert "update_actor 313.81 s in a step of 294.77 s" in printed
    assert "5 findings in 33 steps and rows of 1 files" in printed


def test_json_has_its_keys() -> None:
    code, printed = audit(str(DATA / "published_tables.json"), "--json")
    found = json.loads(printed)["findings"]
    assert (code, len(found)) == (1, 5)
    assert {"rule", "severity", "file", "line", "step", "evidence", "would_be_true_if", "source"} <= found[0].keys()


def test_rules_are_listed() -> None:
    code, printed = audit("--rules", "--json")
    assert code == 0
    assert [rule["rule"] for rule in json.loads(printed)["rules"]] == [rule.name for rule in RULES]


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 100, b"another program's log\n", b"[]", "käse".encode()[:2]])
def test_nothing_to_audit_is_one_line(tmp_path: Path, content: bytes) -> None:
    for name in ("x.log", "x.json", "x.md"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match="nothing to audit"):
            examine([str(tmp_path / name)])


def test_a_file_that_is_broken_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(b"\x1f\x8b" + bytes(30))
    (tmp_path / "b.log").write_bytes((LOGS / "verl_issue_pastes.log").read_bytes())
    done = examine([str(tmp_path)])
    assert len(done.files) == 1
    assert "a.log.gz: cannot be read" in done.warnings[0]


@pytest.mark.parametrize("words", [["--given", "memory_card"], ["--given", "weight=3"], []])
def test_a_wrong_word_is_one_line(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["audit", *([str(LOGS)] if words else []), *words])
    assert done.exit_code == 4
    assert "Traceback" not in done.output
