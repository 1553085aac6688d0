"""NeMo RL's console: the facts of real logs, and that rubbish neither raises nor becomes a number."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.examine import examine
from harness.ingest.keymap import key_map
from harness.ingest.readers.nemo_rl_console import MOST_KEYS, NemoRlConsole
from harness.ingest.reading import Block
from tests import DATA

LOGS = DATA / "real_logs" / "nemo_rl"
RUN = LOGS / "nemo_rl_grpo_gemma1b_8xB200_50steps_blocks_2026-02.log"
RAW = LOGS / "nemo_rl_grpo_gemma1b_8xB200_steps1-2_raw_2026-02.log"
PASTES = LOGS / "nemo_rl_issue_pastes.log"
READER = NemoRlConsole()
TOTAL = "Timing/Total step time"
NESTED = "Timing/prepare_for_generation/transfer_and_update_weights"
DEVICES, SAMPLES = 8, 512


def of_text(text: bytes) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(READER.blocks(io.BytesIO(text), lambda *told: warnings.append(told))), warnings


def of_file(path: Path, kind: str = "training") -> list[Block]:
    found, warnings = of_text(path.read_bytes())
    assert warnings == []
    assert READER.recognises(path.read_bytes(), path.name) is not None
    return [block for block in found if block.kind == kind]


def top_level(block: Block) -> float:
    """The sum of the timers that the key map takes for stages of the step."""
    keys = key_map("nemo_rl")
    parts = [v for k, v in block.values.items() if (m := keys.meaning(k)) and m.quantity == "stage_seconds"]
    return sum(parts)


def test_every_block_once_with_its_validation_before_it() -> None:
    assert [block.step for block in of_file(RUN)] == list(range(1, 51))
    validated = of_file(RUN, "validation")
    assert [block.step for block in validated] == [10, 20, 30, 40, 50]
    lines = {block.step: block.line for block in of_file(RUN)}
    assert all(block.step is not None and block.line < lines[block.step] for block in validated)
    assert validated[0].values["Validation Timing/Total validation time"] == 30.49
    assert [block.step for block in of_file(RAW)] == [1, 2]


def test_top_level_timers_add_up_and_the_nested_one_overshoots() -> None:
    overshoots = []
    for block in of_file(RUN):
        rest = block.values[TOTAL] - top_level(block)
        if block.step and block.step % 10:
            assert rest == pytest.approx(0, abs=0.035)
            if NESTED in block.values:
                overshoots.append(block.values[NESTED] - rest)
    assert len(overshoots) == 41
    assert all(0.4 < seconds < 0.8 for seconds in overshoots)


def test_a_step_that_validates_has_validation_and_five_unnamed_seconds_in_its_total() -> None:
    (step,) = (block for block in of_file(RUN) if block.step == 10)
    (validation,) = (block for block in of_file(RUN, "validation") if block.step == 10)
    assert step.values[TOTAL] == 80.85
    assert top_level(step) == pytest.approx(45.45)
    unnamed = 80.85 - top_level(step) - validation.values["Validation Timing/Total validation time"]
    assert unnamed == pytest.approx(4.91)
    assert step.values["Timing/checkpointing"] == 4.69
    missing = [block.step for block in of_file(RUN) if NESTED not in block.values]
    assert missing == [11, 21, 31, 41]  # the weights were handed over for the validation before


def test_three_lengths_that_are_not_the_same() -> None:
    first = of_file(RUN)[0].values
    rate = first["Performance Metrics/E2E (Tokens/sec/gpu)"]
    assert rate * DEVICES * first[TOTAL] / SAMPLES == pytest.approx(722, abs=0.5)
    assert first["Performance Metrics/Mean Total Tokens per Sample"] == 619.48
    assert first["Training Results/Mean Generation Length"] == 616.4766
    for block in of_file(RUN):
        values = block.values
        by_device = values["Performance Metrics/E2E (Tokens/sec/gpu)"] * DEVICES * values[TOTAL]
        assert by_device == pytest.approx(values["Performance Metrics/E2E (Tokens/sec)"] * values[TOTAL], rel=1e-4)
        of_stage = values["Performance Metrics/Generation Worker Group (Tokens/sec/gpu)"] * values["Timing/generation"]
        assert of_stage * DEVICES == pytest.approx(by_device, rel=5e-4)
        prompt = by_device / SAMPLES - values["Performance Metrics/Mean Total Tokens per Sample"]
        assert 90 < prompt < 140
        environment = (
            values["Performance Metrics/Mean Total Tokens per Sample"]
            - values["Training Results/Mean Generation Length"]
        )
        assert environment == pytest.approx(3, abs=0.01)


def test_four_decimals_of_a_small_number_and_what_the_map_says_of_them() -> None:
    errors = {block.values["Training Results/Generation KL Error"] for block in of_file(RUN)}
    assert errors <= {0.0005, 0.0006, 0.0007}
    for mode in ("sync", "async"):
        meaning = key_map("nemo_rl").meaning("Training Results/Generation KL Error", mode=mode)
        assert meaning is not None
        assert not meaning.same
        assert "4 decimals" in (meaning.differs_because or "")


def test_pastes_asynchronous_impossible_and_without_a_head() -> None:
    found, warnings = of_text(PASTES.read_bytes())
    overlapped, impossible, bare = (block.values for block in found)
    assert [block.step for block in found] == [None, 2, None]
    assert [block.words for block in found] == [{"mode": "async"}, {}, {"mode": "async"}]
    assert overlapped["Training Results/Avg Trajectory Age"] == 1.0
    assert overlapped["Timing/weight_sync"] == 0.13
    assert "Timing/generation" not in overlapped
    assert impossible["Training Results/Training Model Floating Point Utilization"] == 273.81
    same = [impossible[f"Training Results/Training FLOPS{which}"] for which in ("", " per rank")]
    assert same == [2709.39, 2709.39]
    assert bare["Timing/exposed_generation"] == 33.42
    assert "Timing/policy_and_reference_logprobs" not in bare
    assert [line for line, _ in warnings] == [36]
    assert "taken as another step" in warnings[0][1]


def test_every_key_of_the_real_logs_is_known() -> None:
    for path in LOGS.iterdir():
        found, _ = of_text(path.read_bytes())
        for block in found:
            assert [key for key in block.values if key_map("nemo_rl").meaning(key) is None] == []


def test_the_audit_finds_what_is_impossible_and_accuses_nothing_else() -> None:
    done = examine([str(LOGS)])
    assert [(f.rule, f.where.step) for f in done.findings] == [("mfu_over_one", 2)]
    assert set(done.files.values()) == {"nemo_rl console"}
    assert done.cases == 55


BLOCK = """
{head}
📊 Training Results:
  • Loss: -0.0042
  • Avg Reward: nan
\x1b[36m(Worker pid=1)\x1b[0m   • Loss: 9
  -
⏱️  Timing:
  • Total step time: 43.31s
Processed prompts: 100%|█| 4/4\r  • generation: 33.22s (76.7%)
  • prepare_for_generation/total: 2.95s (6.8%)

🔍 Performance Metrics:
  • Throughputs (per GPU):
    - E2E (Tokens/sec/gpu): 1284.48
"""
VALUES = {
    "Training Results/Loss": -0.0042,
    "Training Results/Avg Reward": float("nan"),
    TOTAL: 43.31,
    "Timing/generation": 33.22,
    "Timing/prepare_for_generation/total": 2.95,
    "Performance Metrics/E2E (Tokens/sec/gpu)": 1284.48,
}


def block(step: int, epoch: str = "") -> str:
    return BLOCK.format(head=f"{epoch}{'=' * 25} Step {step}/9 {'=' * 25}")


def test_noise_of_other_processes_within_a_block() -> None:
    found, warnings = of_text((block(1) + "anything: 3\n" + block(2)).encode())
    assert [(one.step, repr(one.values)) for one in found] == [(1, repr(VALUES)), (2, repr(VALUES))]
    assert warnings == []


def test_steps_that_begin_again_with_an_epoch_are_told_apart() -> None:
    line = "=" * 25
    found, _ = of_text(
        (block(1, f"{line} Epoch 1/2 {line}\n") + block(1, f"{line} Epoch 2/2 {line}\n")).encode(),
    )
    assert [(one.step, one.scope) for one in found] == [(1, "epoch 1"), (1, "epoch 2")]


def test_the_single_controller_names_its_step_after_the_timers() -> None:
    timers = "⏱️  Timing:\n  • Total step time: 9.00s\n  • valid_tokens_per_sec_per_gpu: 812.50s (9027.8%)\n"
    text = timers + "step_metrics={'loss': 0.25, 'lr': tensor(1e-06), 'who': 'x'}\n"
    text += "train step 3/10  trainer_v=3  lag=2  \n"
    found, warnings = of_text(text.encode())
    assert [(one.step, one.values["train step/lag"]) for one in found] == [(3, 2.0)]
    assert (found[0].values["step_metrics/loss"], found[0].values["step_metrics/lr"]) == (0.25, 1e-6)
    meaning = key_map("nemo_rl").meaning("Timing/valid_tokens_per_sec_per_gpu")
    assert meaning is not None
    assert meaning.unit == "tokens/s"
    assert warnings == []


def test_the_efficiency_summary_is_a_table() -> None:
    head = "\n📊 Efficiency Summary (Step 1):\n  Category    Time (s)  % of Wall\n"
    text = head + "  idle/validation        30.49    1.25%\n"
    found, warnings = of_text((block(1) + text + "  wasted/failed (thread-s)   1.00     n/a\n").encode())
    assert found[0].values["Efficiency Summary/idle/validation"] == 30.49
    assert found[0].values["Efficiency Summary/wasted/failed (thread-s)"] == 1.0
    assert warnings == []


@pytest.mark.parametrize("digits", ["9" * 5000, "1e999", "9" * 400 + ".5"])
def test_what_python_cannot_count_is_no_number(digits: str) -> None:
    found, _ = of_text(block(1).replace("-0.0042", digits).replace("Step 1/9", f"Step {digits}/9").encode())
    assert found[0].step is None
    assert "Training Results/Loss" not in found[0].values


@pytest.mark.parametrize("line", ["9" * 1_000_000, "  • " + "a" * 1_000_000, "- " * 500_000, " " * 1_000_000 + "x:"])
def test_a_line_without_end_does_not_hang(line: str) -> None:
    found, _ = of_text((block(1) + line + "\n" + "Efficiency Summary:\n  " + line + "\n" + block(2)).encode())
    assert repr(found[-1].values) == repr(VALUES)


def test_a_block_without_end_does_not_grow_without_end() -> None:
    timers = "".join(f"  • stage_{number}: 1.00s (0.0%)\n" for number in range(MOST_KEYS + 2))
    found, warnings = of_text(("⏱️  Timing:\n" + timers).encode())
    assert len(found[0].values) == MOST_KEYS
    assert "the rest left out" in warnings[0][1]


def test_what_is_no_number_is_named() -> None:
    found, warnings = of_text(block(1).replace("-0.0042", "tensor(3)").encode())
    assert "Training Results/Loss" not in found[0].values
    assert "no number" in warnings[0][1]


def test_charts_of_workers_are_no_numbers_and_no_warning() -> None:
    chart = """
🔍 Performance Metrics:
  • Visualizing Token Imbalance per Generation Worker:
    - Generated Tokens from Worker   0:■■■■■■■□□□ Count: 12.3K
  • Average Token Imbalance: 12.50%
  • vLLM Logger Metrics:
  - Inflight Batch Sizes:
    - Max value: 64
    - Min idle time: 1.5 s
    - Timeline (0: ▁, 1.0-16.0: ▃, 16.0-32.0: ▅):
    - Generation Worker   0: ▃▃▅ (Active: 30.00 s, Idle: 1.50 s)
  • Training Worker Idle Time Ratio: 0.00%
"""
    found, warnings = of_text(chart.encode())
    names = ("Average Token Imbalance", "Training Worker Idle Time Ratio")
    assert found[0].values == {
        f"Performance Metrics/{name}": value for name, value in zip(names, (12.5, 0), strict=True)
    }
    assert warnings == []


@settings(max_examples=30)
@given(st.integers(0, 40_000))
def test_a_real_log_cut_anywhere_reads_the_same_up_to_there(cut: int) -> None:
    text = RUN.read_bytes()[:45_000]
    everything, _ = of_text(text)
    found, _ = of_text(text[:cut])
    assert found[:-1] == everything[: len(found[:-1])]
    if found:
        assert found[-1].values.items() <= everything[len(found) - 1].values.items()


@settings(max_examples=60)
@given(st.integers(0, len(block(1).encode()) - 1))
def test_a_torn_last_block_gives_what_is_whole_and_a_warning(cut: int) -> None:
    whole = block(1).encode()
    found, warnings = of_text(whole + whole.replace(b"Step 1/", b"Step 2/")[:cut])
    assert repr(found[0].values) == repr(VALUES)
    assert repr(found[1].values if len(found) > 1 else {}).strip("{}") in repr(VALUES)
    complete = len(found) < 2 or repr(found[1].values) == repr(VALUES)
    assert complete or warnings


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_rubbish_never_raises_and_costs_no_block(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    of_text(rubbish)
    found, _ = of_text(block(1).encode() + rubbish + b"\n" + block(2).encode())
    assert found[-1].step == 2
    assert repr(found[-1].values) == repr(VALUES)


@settings(max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_what_is_written_is_read(numbers: list[float]) -> None:
    lines = "".join(f"  • stage_{i}: {number:.2f}s ({i}.0%)\n" for i, number in enumerate(numbers))
    found, _ = of_text(("⏱️  Timing:\n" + lines).encode())
    assert list(found[0].values.values()) == [float(f"{number:.2f}") for number in numbers]
