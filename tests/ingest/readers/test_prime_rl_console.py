"""PRIME-RL's console: two processes, fields that came and went; rubbish neither raises nor becomes a number."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.examine import examine
from harness.ingest.keymap import key_map
from harness.ingest.readers.prime_rl_console import PrimeRlConsole
from harness.ingest.reading import Block
from tests import DATA

LOG = DATA / "real_logs" / "prime_rl" / "prime_rl_console_lines.log"
READER = PrimeRlConsole()


def read(text: bytes) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(READER.blocks(io.BytesIO(text), lambda *told: warnings.append(told))), warnings


def one(line: str) -> Block:
    (block,), warnings = read(line.encode() + b"\n")
    assert warnings == []
    assert READER.recognises(line.encode(), "x") is not None
    return block


def test_every_step_of_both_processes_once_and_no_false_warning() -> None:
    found, warnings = read(LOG.read_bytes())
    assert READER.recognises(LOG.read_bytes(), LOG.name) is not None
    steps = [(block.scope, block.step) for block in found]
    assert [step for scope, step in steps if scope == "orchestrator"] == [13, 14, 28, 29, 30, 31, 9, 10, 1500]
    assert [step for scope, step in steps if scope == "trainer"] == [1, 1, 0, 0, 10]
    assert warnings == []


def test_the_step_whose_rollouts_were_finished_before_its_timer_began() -> None:
    found, _ = read(LOG.read_bytes())
    step = found[1]
    assert (step.step, step.values["orchestrator/Time"], step.values["orchestrator/Throughput"]) == (14, 0.58, 23525.9)
    assert step.values["orchestrator/Async Level"] == 2
    done = examine([str(LOG)])
    waits = [f for f in done.findings if f.rule == "rate_of_a_wait"]
    assert [(f.where.step, f.where.key) for f in waits] == [(14, "orchestrator/Throughput")]
    # What else is found is that the pastes are of several runs, and that two of them are of the same step.
    rest = {(f.rule, f.where.step) for f in done.findings} - {("rate_of_a_wait", 14)}
    assert rest == {("step_runs_back", step) for step in (9, 1, 0)}


def test_memory_of_the_same_step_handed_out_and_held() -> None:
    found, _ = read(LOG.read_bytes())
    peaks = [block.values["trainer/Peak Mem."] for block in found if block.line in (21, 22)]
    assert peaks == [5.2, 7.8]
    assert {block.values["trainer/Peak Mem. of"] for block in found if block.line in (21, 22)} == {23.7}
    meaning = key_map("prime_rl").meaning("trainer/Peak Mem.")
    assert meaning is not None
    assert "2025-10-20" in (meaning.differs_because or "")


def test_a_peak_above_the_card_that_its_line_names_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG.read_text().replace("5.2/23.7 GiB", "25.2/23.7 GiB"))
    assert [f.where.line for f in examine([str(path)]).findings if f.rule == "memory_over_card"] == [21]


def test_every_key_of_the_real_log_is_known_and_none_that_is_gone_is_missed() -> None:
    found, _ = read(LOG.read_bytes())
    keys = {key for block in found for key in block.values}
    assert {key for key in keys if key_map("prime_rl").meaning(key) is None} == set()
    without = [block for block in found if block.line in (15, 19)]
    assert [sorted(block.values) for block in without] == [
        [
            "orchestrator/Async Level",
            "orchestrator/Max. Off-Policy Level",
            "orchestrator/Reward",
            "orchestrator/Seq. Length",
            "orchestrator/Time",
        ]
    ] * 2


def test_what_was_in_flight_is_not_the_lag_of_the_batch() -> None:
    keys = key_map("prime_rl")
    before, since = (keys.meaning(f"orchestrator/{key}") for key in ("Max. Off-Policy Level", "Max Off-Policy"))
    assert before is not None
    assert since is not None
    assert (before.quantity, since.quantity) == (None, "lag_max")


NEW = "Step 3 |  2m 14s | Loss 0.0019 | Entropy 0.2105 | Mismatch KL 0.0006 | LR 1.00e-06 | Throughput 1507 tokens/s"
NEW += " | MFU 12.4% | Peak Mem. 7.8 GiB"
VALUES = {"Time": 134.0, "Loss": 0.0019, "Entropy": 0.2105, "Mismatch KL": 0.0006, "LR": 1e-6, "Throughput": 1507.0}
VALUES = {f"trainer/{key}": value for key, value in (VALUES | {"MFU": 12.4, "Peak Mem.": 7.8}).items()}


@pytest.mark.parametrize(
    "line",
    [
        NEW,
        f"12:51:09 SUCCESS {NEW}",
        f"[default0]:12:51:09 SUCCESS {NEW}",
        f"\x1b[2m12:51:09\x1b[0m \x1b[32m\x1b[1mSUCCESS\x1b[0m \x1b[32m\x1b[1m\x1b[22m{NEW}\x1b[0m\x1b[1m\x1b[0m",
        f"12:51:09 SUCCESS {NEW} [train.py::648]",
        f"Generating rollouts:  50%|#####     | 64/128 [00:00<00:00]\r12:51:09 SUCCESS {NEW}\r",
        f'{{"timestamp": "2026-08-20T12:51:09", "level": "SUCCESS", "message": "{NEW}", "module": "train"}}',
        f"['12:51:09    INFO Starting', '12:51:09 SUCCESS {NEW}', '']",
    ],
)
def test_a_line_without_colons_in_all_its_wrappings(line: str) -> None:
    block = one(line)
    assert (block.step, block.scope, block.values) == (3, "trainer", VALUES)


def test_a_micro_step_is_no_step() -> None:
    found, warnings = read(b"12:51:09   DEBUG Micro Step 1/2 | Loss 0.5 | Entropy 0.2\nMicro Step 1/2 | Loss: 0.5\n")
    assert found == []
    assert warnings == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("58ms", 0.058), ("1.35s", 1.35), ("1m", 60), ("2m 14s", 134), ("1h 3m", 3780), ("1d 2h", 93600), ("3h", 10800)],
)
def test_times_as_they_are_printed(text: str, seconds: float) -> None:
    assert one(f"Step 1 | {text:>7} | Loss 0.1").values["trainer/Time"] == pytest.approx(seconds)


def test_the_first_time_of_an_orchestrator_is_none() -> None:
    block = one("Step 1 |     0ms | Reward 0.5000 | Trainable 12/16 (75.0%) | Max Off-Policy 0 | Truncation 6.2%")
    assert "orchestrator/Time" not in block.values
    assert (block.values["orchestrator/Trainable"], block.values["orchestrator/Trainable of"]) == (12, 16)


def test_lines_of_environments_are_of_their_step() -> None:
    text = """12:00:00 SUCCESS Step 7 |   1.50s | Reward 0.5000 | Turns 1.0 | Error 0.0%
\t\t ╰─ gsm8k | Ratio 60.0% | Reward 0.4000 | Turns 1.0
\t\t ╰─ wiki  | Ratio 40.0% | Reward 0.6000 | Turns 1.0
12:00:09 SUCCESS Evaluated gsm8k (Step 7) | Policy v6 |    9.0s | Reward 0.7000 | Turns 1.0
12:00:10 SUCCESS Validation | Step 8 | Loss 1.2500
"""
    found, warnings = read(text.encode())
    assert [(block.step, block.kind, block.scope) for block in found] == [
        (7, "training", "orchestrator"),
        (7, "validation", "eval gsm8k"),
        (8, "validation", "trainer"),
    ]
    assert found[0].values["orchestrator/gsm8k/Reward"] == 0.4
    assert found[0].values["orchestrator/Reward"] == 0.5
    assert found[1].values["eval/gsm8k/Policy"] == 6
    assert found[1].values["eval/gsm8k/Time"] == 9.0
    assert warnings == []


def test_steps_of_two_processes_do_not_run_back(tmp_path: Path) -> None:
    lines = [f"Step {n} | 2.00s | Reward 0.5\nStep {n - 1} | 1.00s | Loss 0.1\n" for n in range(2, 6)]
    path = tmp_path / "both.log"
    path.write_text("".join(lines))
    assert examine([str(path)]).findings == []


def test_what_is_no_number_is_named_and_a_torn_line_loses_its_last_field() -> None:
    found, warnings = read(b"Step 1 | Time: 2.00s | Loss: broken | LR: 1.00e-06\nStep 2 | Time: 2.00s | Loss: 0.12")
    assert [sorted(block.values) for block in found] == [["trainer/LR", "trainer/Time"]]
    assert [line for line, _ in warnings] == [1, 2, 2]


@pytest.mark.parametrize("digits", ["9" * 5000, "1e999", "9" * 400 + ".5"])
def test_what_python_cannot_count_is_no_number(digits: str) -> None:
    found, warnings = read(f"Step {digits} | 1.00s | Loss 0.1\nStep 2 | 1.00s | Loss {digits} | LR 0.1\n".encode())
    assert [(block.step, block.values) for block in found] == [(2, {"trainer/Time": 1.0, "trainer/LR": 0.1})]
    assert len(warnings) == 1


@pytest.mark.parametrize("text", [many * 50_000 for many in ("9" * 9, "SUCCESS ", "Step 1 | 1s", "Loss: ", " ")])
def test_a_line_without_end_does_not_hang(text: str) -> None:
    READER.recognises(text.encode()[: 256 * 1024], "x")
    found, _ = read(f"Step 1 | 1.00s | Loss {text} | LR 0.1\n{text}\n{NEW}\n".encode())
    assert found[-1].values == VALUES


@settings(max_examples=60)
@given(st.integers(0, len(NEW)))
def test_a_line_cut_anywhere_gives_no_number_that_is_not_in_it(cut: int) -> None:
    found, _ = read(NEW[:cut].encode())
    for block in found:
        assert block.values.items() <= VALUES.items()


@settings(max_examples=40)
@given(st.integers(0, 4527))
def test_the_real_log_cut_anywhere_reads_the_same_up_to_there(cut: int) -> None:
    everything, _ = read(LOG.read_bytes())
    found, _ = read(LOG.read_bytes()[:cut])
    assert found[:-1] == everything[: len(found[:-1])]
    if found:
        assert found[-1].values.items() <= everything[len(found) - 1].values.items()


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_rubbish_never_raises_and_costs_no_line(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    read(rubbish)
    found, _ = read(NEW.encode() + b"\n" + rubbish + b"\n" + NEW.encode() + b"\n")
    assert found[0].values.items() >= VALUES.items()
    assert found[-1].values == VALUES


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(["Loss", "Entropy", "Grad. Norm", "MFU"]), st.floats(-1e6, 1e6), min_size=1),
    st.sampled_from([": ", " "]),
)
def test_what_is_written_is_read(values: dict[str, float], colon: str) -> None:
    fields = " | ".join(f"{label}{colon}{value:.4f}" for label, value in values.items())
    (block,), _ = read(f"12:00:00 SUCCESS Step 9 | 1.00s | {fields}\n".encode())
    written = {f"trainer/{label}": float(f"{value:.4f}") for label, value in values.items()}
    assert block.values == {"trainer/Time": 1.0} | written
