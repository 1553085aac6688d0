"""verl's console: the facts of real logs, and that rubbish neither raises nor becomes a number."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ingest.readers.verl_console import VerlConsole
from harness.ingest.reading import Block
from tests import DATA

LOGS = DATA / "real_logs" / "verl"
READER = VerlConsole()


def blocks(path: Path) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    with path.open("rb") as stream:
        return list(READER.blocks(stream, lambda *told: warnings.append(told))), warnings


def of_text(text: bytes) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(READER.blocks(io.BytesIO(text), lambda *told: warnings.append(told))), warnings


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("verl_grpo_npfloat_2025-12.log", list(range(1, 55))),
        ("verl_ppo_gsm8k_notebook_2025-01.log", list(range(61))),
        ("verl_logicrl_wandb_output_2025-03.log", list(range(10))),
        ("verl_crash_before_step1_2025-03.log", []),
        ("verl_issue_pastes.log", [2, 0, 1, 5, 83, 34, 60]),
    ],
)
def test_every_step_once_and_no_false_warning(name: str, steps: list[int]) -> None:
    found, warnings = blocks(LOGS / name)
    assert [block.step for block in found] == steps
    assert warnings == []
    assert READER.recognises((LOGS / name).read_bytes(), name) is not None


def test_facts_of_the_run_with_numpy_numbers() -> None:
    found, _ = blocks(LOGS / "verl_grpo_npfloat_2025-12.log")
    for block in found:
        values = block.values
        devices = values["perf/total_num_tokens"] / (values["timing_s/step"] * values["perf/throughput"])
        assert devices == pytest.approx(1.0, rel=1e-6)
    last, first = found[-1].values, found[0].values
    assert (last["perf/total_num_tokens"], round(last["perf/throughput"], 1)) == (1829, 55.5)
    assert last["response_length/mean"] * 2 / last["timing_s/step"] == pytest.approx(1.15, abs=0.01)
    assert first["timing_s/step"] == pytest.approx(59.7, abs=0.05)
    assert max(block.values["timing_s/step"] for block in found[1:]) < 40


def test_facts_of_the_pastes() -> None:
    by_step = {block.step: block for block in blocks(LOGS / "verl_issue_pastes.log")[0]}
    impossible, straggler, wrapped = by_step[2].values, by_step[34].values, by_step[60].values
    assert impossible["perf/mfu/actor"] == 1.018
    assert impossible["response_length/clip_ratio"] == 0.004
    assert by_step[0].kind == "validation"
    parts = ("gen", "ref", "old_log_prob", "adv", "update_actor", "update_weights")
    named = sum(straggler.get(f"timing_s/{part}", 0.0) for part in parts)
    assert named == pytest.approx(1163.6, abs=0.1)
    assert straggler["timing_s/agent_loop/slowest/num_preempted"] == -1
    slow, mean = (straggler[f"timing_s/agent_loop/generate_sequences/{how}"] for how in ("max", "mean"))
    assert mean / slow == pytest.approx(0.49, abs=0.005)
    assert wrapped["actor/entropy"] == pytest.approx(0.347299188375473)
    assert wrapped["perf/mfu/actor"] == pytest.approx(0.39073022233029864)
    assert wrapped["perf/max_memory_allocated_gb"] == pytest.approx(204.92134189605713)


LINE = b"step:3 - actor/pg_loss:-0.000 - actor/lr:1e-06 - val-core/openai/gsm8k/acc/mean@1:0.5 - a/b:np.int32(2)"
VALUES = {"actor/pg_loss": -0.0, "actor/lr": 1e-6, "val-core/openai/gsm8k/acc/mean@1": 0.5, "a/b": 2.0}


@pytest.mark.parametrize(
    "text",
    [
        LINE + b"\n",
        LINE + b"\r\n",
        b"(TaskRunnerV1 pid=7, ip=10.0.0.1) " + LINE + b"\n",
        b"\x1b[36m(main_task pid=28294)\x1b[0m " + LINE + b"\n",
        b"`(main_task pid=1) " + LINE + b"\n",
        b"noise\n" * 3 + LINE.replace(b" - ", b"\n - ") + b"\nmore noise: step:4 of 9\n",
        LINE.replace(b"pg_loss", b"pg_\nloss") + b"\n",
        LINE.replace(b"actor/lr", b"act\nor/lr") + b"\nTraining Progress: 2%\n",
    ],
)
def test_prefixes_colours_and_wraps(text: bytes) -> None:
    found, warnings = of_text(text)
    assert [(block.step, block.values) for block in found] == [(3, VALUES)]
    assert warnings == []


def test_a_step_within_a_line_is_none() -> None:
    found, _ = of_text(
        b"step:1 - training/global_step:1 - actor/lr:0.1\nstep:2 - training/global_step:2 - actor/lr:0.2\n"
    )
    assert [block.step for block in found] == [1, 2]


def test_a_line_with_step_in_it_twice_is_looked_at_once() -> None:
    # found by fuzzing: it was looked at for ever, where its first key is none of verl's
    assert READER.recognises(b"step:1 - custom/x:0.5 - timing_s/step:28.9\nstep:2 - critic/x:0.5\n", "x") is not None
    assert READER.recognises(b"step:1 - custom/x:0.5 - timing_s/step:28.9\n", "x") is None


def test_a_torn_last_line_loses_its_last_value_and_says_so() -> None:
    found, warnings = of_text(b"step:1 - actor/lr:0.1 - timing_s/step:96.5")
    assert found[0].values == {"actor/lr": 0.1}
    assert "last value" in warnings[0][1]


def test_what_is_no_number_is_named() -> None:
    found, warnings = of_text(b"step:1 - actor/lr:fast - actor/x:nan - actor/ok:True - actor/y\n")
    assert found[0].values.keys() == {"actor/x", "actor/ok"}
    assert [line for line, _ in warnings] == [1, 1]


@given(st.binary(max_size=400))
def test_rubbish_never_raises(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    of_text(rubbish)
    found, _ = of_text(LINE + b"\n" + rubbish.replace(b"\n", b"") + b"\n" + LINE + b"\n")
    assert VALUES.items() <= found[-1].values.items()


@given(st.dictionaries(st.from_regex(r"[a-z_/@.]{1,20}", fullmatch=True), st.floats(), min_size=1, max_size=20))
def test_what_is_written_is_read(values: dict[str, float]) -> None:
    line = "step:9 - " + " - ".join(f"{key}:{value!r}" for key, value in values.items()) + "\n"
    (block,), _ = of_text(line.encode())
    assert repr(block.values) == repr(values)
