"""AReaL's console: tables with the step whose line stands before them, and rows that belong to none."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.examine import examine
from harness.ingest.keymap import key_map
from harness.ingest.readers.areal_console import ArealConsole
from tests import DATA
from tests.ingest.readers.cuts import invented, read

LOG = DATA / "real_logs" / "areal" / "areal_stats_lines.log"
READER = ArealConsole()
KEYS = key_map("areal")
HEAD = "(AReaL) 20260829-00:00:00.000 StatsLogger INFO: "
STEP = f"{HEAD}Epoch 1/1 Step 3/9 Train step 3/9 done.\n"
TABLE = """\
╒═══════════════════════════╤════════════╤═════════════════════╤════════════╤════════════════════════════╤═════════════╕
│ ppo_actor/task_reward/avg │ 4.9000e-01 │ ppo_actor/n_seqs    │         16 │ ppo_actor/update/grad_norm │         nan │
├───────────────────────────┼────────────┼─────────────────────┼────────────┼────────────────────────────┼─────────────┤
│ ppo_actor/task_reward/min │ 0.0000e+00 │ timeperf/rollout    │ 9.9990e+00 │ ppo_actor/update/lr        │ -2.5000e-04 │
├───────────────────────────┼────────────┼─────────────────────┼────────────┼────────────────────────────┼─────────────┤
│ ppo_actor/task_reward/max │ 1.0000e+00 │ timeperf/train_step │ 4.0000e-01 │                            │             │
╘═══════════════════════════╧════════════╧═════════════════════╧════════════╧════════════════════════════╧═════════════╛
"""
VALUES = {
    "ppo_actor/task_reward/avg": 0.49,
    "ppo_actor/n_seqs": 16,
    "ppo_actor/update/grad_norm": float("nan"),
    "ppo_actor/task_reward/min": 0,
    "timeperf/rollout": 9.999,
    "ppo_actor/update/lr": -2.5e-4,
    "ppo_actor/task_reward/max": 1,
    "timeperf/train_step": 0.4,
}


def same(values: dict[str, float], wanted: dict[str, float]) -> bool:
    return {key: repr(float(value)) for key, value in values.items()} == {
        key: repr(float(v)) for key, v in wanted.items()
    }


def test_facts_of_the_real_lines() -> None:
    found, warnings = read(READER, LOG.read_bytes())
    assert READER.recognises(LOG.read_bytes(), LOG.name) is not None
    assert warnings == []
    assert [block.step for block in found] == [940, 1, 2, None, 1, None]
    assert set(found[0].values.values()) == {0.0}
    assert found[1].values["ppo_actor/correct_n_seqs"] + found[1].values["ppo_actor/incorrect_n_seqs"] == 4
    assert found[3].values["timeperf/update_weights"] == 103.29  # of a table whose head is lost: of no step
    assert found[4].values["ppo_actor/update/n_valid_tokens"] == 2540
    assert (found[5].kind, found[5].values) == ("summary", {"Total time elapsed": 10.0})
    assert all(KEYS.meaning(key) for block in found for key in block.values)


def test_the_audit_finds_the_run_that_learnt_nothing() -> None:
    done = examine([str(LOG)])
    assert {(one.rule, one.where.line) for one in done.findings} == {("rewards_all_zero", 2), ("step_runs_back", 8)}


def test_the_actors_scope_was_renamed_and_means_the_same() -> None:
    old = {entry.key.removeprefix("grpo_actor/"): entry.quantity for entry in KEYS.entries if "grpo_actor" in entry.key}
    new = {entry.key.removeprefix("ppo_actor/"): entry.quantity for entry in KEYS.entries if "ppo_actor" in entry.key}
    assert old == new
    count, reward = KEYS.meaning("rollout/reward__count"), KEYS.meaning("rollout/reward")
    assert count is not None
    assert (count.quantity, count.measure) == (None, None)
    assert reward is not None
    assert (reward.quantity, reward.same) == (None, False)


@pytest.mark.parametrize(
    "text",
    [
        STEP + HEAD + "Stats (1/1):\n" + HEAD + "\n" + TABLE,
        STEP + TABLE,
        STEP + "[actor]    (AReaL) another process\n" + TABLE,
        STEP + TABLE.replace("├", "\x1b[37mnoise of another process\n├", 1),
        "".join(f"[actor]    {line}\n" for line in (STEP + TABLE).splitlines()),
        "".join(f"\x1b[37m{line}\x1b[0m\r\n" for line in (STEP + TABLE).splitlines()),
        STEP + "".join(line + "\n" for line in TABLE.splitlines() if "│" in line),
    ],
)
def test_a_table_however_it_is_printed(text: str) -> None:
    (block,), warnings = read(READER, text.encode())
    assert (block.step, block.line) == (3, 1)
    assert same(block.values, VALUES)
    assert warnings == []


def test_a_table_whose_step_is_not_right_before_it_has_none() -> None:
    found, _ = read(READER, (TABLE + STEP + TABLE + TABLE).encode())
    assert [block.step for block in found] == [None, 3, None]


def test_a_step_of_several_tables() -> None:
    text = STEP + HEAD + "Stats (1/2):\n" + TABLE + HEAD + "Stats (2/2):\n" + TABLE
    found, _ = read(READER, text.encode())
    assert [(block.step, block.scope) for block in found] == [(3, "stats 1/2"), (3, "stats 2/2")]


MEMORY = (
    "Memory-Usage {}: memory allocated (GB): {}, memory reserved (GB): {}, device memory used/total (GB): {}/79.15\n"
)


def test_memory_is_of_the_step_that_ends_next_and_more_than_the_card_is_impossible(tmp_path: Path) -> None:
    text = MEMORY.format("ppo update", "12.50", "90.25", "70.00") + STEP + TABLE
    (block,), _ = read(READER, text.encode())
    assert block.step == 3
    assert block.values["Memory-Usage ppo update: memory reserved (GB)"] == 90.25
    (tmp_path / "main.log").write_text(text, encoding="utf-8")
    done = examine([str(tmp_path / "main.log")])
    finding = next(one for one in done.findings if one.rule == "memory_over_card")
    assert "96.91 GB on a device of 84.99 GB" in finding.evidence  # its GB are 1024**3 bytes


@pytest.mark.parametrize("row", ["│ welcome to a tool │\n", "│ run │ 7 │\n", "│ │ │\n", "Train step 3/9\n"])
def test_another_programs_box_is_no_metric(row: str) -> None:
    assert read(READER, row.encode()) == ([], [])


def test_what_is_no_number_is_named() -> None:
    found, warnings = read(READER, (STEP + "│ a/b │ fast │ a/c │ 2.0 │ a/d │\n").encode())
    assert found[0].values == {"a/c": 2.0}
    assert [words for _, words in warnings] == ["a/b: 'fast' is no number: left out", "a/d: '' is no number: left out"]
    assert read(READER, "│ a/b │ 1.0".encode())[0] == []  # cut off: it may have been 1.05


@settings(max_examples=40)
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_rubbish_never_raises(rubbish: str | bytes) -> None:
    data = rubbish if isinstance(rubbish, bytes) else rubbish.encode("utf-8", "surrogatepass")
    READER.recognises(data, "x")
    read(READER, STEP.encode() + "│ a/b │ ".encode() + data)
    found, _ = read(READER, data + b"\n" + (STEP + TABLE).encode())
    assert same(found[-1].values, VALUES)


@settings(max_examples=40)
@given(st.floats(0, 1))
def test_a_log_that_ends_anywhere_invents_nothing(share: float) -> None:
    for data in (LOG.read_bytes(), (MEMORY.format("x", "1.25", "2.50", "3.75") + STEP + TABLE).encode()):
        assert list(invented(READER, data, int(share * len(data)))) == []
