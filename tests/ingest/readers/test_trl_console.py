"""TRL's console: the facts of real logs, entries of every stack, and what only looks like one."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.keymap import key_map
from harness.ingest.readers.trl_console import TrlConsole
from harness.ingest.reading import Block
from tests import DATA

LOGS = DATA / "real_logs" / "trl"
BUFFERED, NO_STEPS, DIRECT = (f"grpo_stdout_tqdm_2026-08_grpo{end}.log" for end in ("", "_test", "_v2"))
PASTES = "trl_issue_pastes.log"
READER = TrlConsole()
Read = tuple[list[Block], list[tuple[int, str]]]


def of_text(text: str | bytes) -> Read:
    warnings: list[tuple[int, str]] = []
    data = text if isinstance(text, bytes) else text.encode()
    return list(READER.blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


def of_log(name: str) -> Read:
    return of_text((LOGS / name).read_bytes())


@pytest.mark.parametrize(
    ("name", "steps"),
    [(BUFFERED, range(20, 1861, 20)), (DIRECT, range(20, 921, 20)), (NO_STEPS, range(0)), (PASTES, [None] * 6)],
)
def test_every_entry_once_with_the_step_of_its_bar(name: str, steps: list[int | None]) -> None:
    found, _ = of_log(name)
    assert [block.step for block in found if block.kind == "training"] == list(steps)
    assert READER.recognises((LOGS / name).read_bytes(), name) is not None


def test_the_end_of_training_is_no_step() -> None:
    for name, seconds, rewards in (
        (BUFFERED, 139862.4789, 0.6671770748371879),
        (NO_STEPS, 943.6118, 0.7466901119162397),
    ):
        (last,) = (block for block in of_log(name)[0] if block.kind == "summary")
        assert (last.values["train_runtime"], last.values["reward"]) == (seconds, rewards)


def test_what_is_warned_of() -> None:
    assert of_log(BUFFERED)[1] == of_log(DIRECT)[1] == []
    assert of_log(NO_STEPS)[1] == [(0, "no entry of a training step in all of it")]
    assert [line for line, _ in of_log(PASTES)[1]] == [2, 0]


def test_the_step_of_an_entry_that_came_late_fits_its_epoch() -> None:
    for name, total, epochs in ((BUFFERED, 1875, 1), (DIRECT, 936, 2)):
        for block in of_log(name)[0]:
            if block.kind == "training":
                assert block.step is not None
                assert block.step / total * epochs == pytest.approx(block.values["epoch"], abs=0.01)


def test_facts_of_the_pastes() -> None:
    found, _ = of_log(PASTES)
    assert [block.values["completion_length"] for block in found[:4]] == [232.825, 237.0375, 233.45, 235.6]
    assert found[5].values["num_tokens"] - found[4].values["num_tokens"] == 4075
    assert (found[5].values["loss"], found[5].values["frac_reward_zero_std"]) == (0.0, 1.0)
    assert "epoch" not in found[5].values  # the paste ends before it


@pytest.mark.parametrize("name", [BUFFERED, NO_STEPS, DIRECT, PASTES])
def test_every_key_of_real_logs_is_known(name: str) -> None:
    known = key_map("trl")
    assert {key for block in of_log(name)[0] for key in block.values if known.meaning(key) is None} == set()


ENTRY = "{'loss': 0.5, 'grad_norm': nan, 'reward_std': np.float64(0.25), 'epoch': 0.1}"
VALUES = {"loss": 0.5, "reward_std": 0.25, "epoch": 0.1}
BAR = "  1%|          | {}/900 [25:47<33:52:52, 65.75s/it]"
WIPE = "\r          \r"


def bars(*steps: int) -> str:
    return "".join("\r" + BAR.format(step) for step in steps)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (ENTRY + "\n", None),
        (ENTRY + "\r\n", None),
        ("\x1b[36m(train pid=7)\x1b[0m " + ENTRY + "\n", None),
        ("[rank0]:" + ENTRY + "\n", None),
        (bars(9, 10) + WIPE + ENTRY + "\n" + bars(10, 11), 10),
        (bars(9, 10) + WIPE + bars(10, 11, 12) + ENTRY + "\n", 10),
        (bars(9, 10) + ENTRY + "\n", None),
        (bars(9, 10) + WIPE + ENTRY + "\n", None),
        (bars(9) + WIPE + ENTRY + "\n" + bars(10), 10),
        ("\rLoading: 50%|##| 1/2 [00:01<00:01]" + bars(10) + WIPE + ENTRY + "\n" + bars(10), 10),
        (bars(10) + WIPE + ENTRY[:44] + "\n" + ENTRY[44:] + "\n" + bars(10), 10),
        (bars(10) + WIPE + ENTRY.replace(", ", ",\n ") + "\n" + bars(10), 10),
        (bars(3) + WIPE + "a message\n" + bars(3, 10) + WIPE + ENTRY + "\n" + bars(10), 10),
    ],
)
def test_one_entry_amid_bars(text: str, step: int | None) -> None:
    found, _ = of_text(text)
    assert [block.step for block in found] == [step]
    assert VALUES.items() <= found[0].values.items()
    assert str(found[0].values["grad_norm"]) == "nan"


@pytest.mark.parametrize("name", ["direct.log", "buffered.log"])
def test_what_transformers_draws_while_steps_are_fast_and_evaluations_have_bars_of_their_own(name: str) -> None:
    found, warnings = of_text((DATA / "formats" / "transformers_bars" / name).read_bytes())
    steps = [block for block in found if block.kind != "summary"]
    assert [(block.kind, block.step) for block in steps if block.kind == "validation"] == [
        ("validation", 20),
        ("validation", 40),
        ("validation", 60),
    ]
    for block in steps:  # the numbers were made so that they tell the step
        assert block.step == block.values.get("reward_std", block.values.get("eval_reward_std"))
    assert len(steps) == 15
    assert {words.split(":")[0] for _, words in warnings} == {"num_tokens"}


@pytest.mark.parametrize(
    ("drawn", "epochs"),
    [((3, 100, 200, 300), (0.1, 0.2, 0.3)), ((100, 100), (0.1, 0.2)), ((100, 90), (0.1, 0.11))],
)
def test_a_bar_that_does_not_fit_the_epochs_tells_no_step(drawn: tuple[int, ...], epochs: tuple[float, ...]) -> None:
    marks = "".join(bars(at) + WIPE + bars(at) for at in drawn)
    found, warnings = of_text(marks + "".join(f"{{'loss': 0.5, 'epoch': {at}}}\n" for at in epochs))
    assert found[-1].step is None
    assert any("does not fit" in words for _, words in warnings)


@given(st.integers(1, 400), st.integers(1, 30), st.sampled_from(["{:.4g}", "{:.2f}"]))
@settings(max_examples=40)
def test_a_rounded_epoch_is_no_misfit(steps_an_epoch: int, logging_steps: int, form: str) -> None:
    steps = range(logging_steps, 60 * logging_steps, logging_steps)
    epochs = (form.format(step / steps_an_epoch) for step in steps)
    found, warnings = of_text(
        "".join(
            bars(step) + WIPE + f"{{'loss': 0.5, 'epoch': '{epoch}'}}\n" + bars(step)
            for step, epoch in zip(steps, epochs, strict=True)
        )
    )
    assert [block.step for block in found] == list(steps)
    assert warnings == []


def test_a_run_that_began_anew_is_no_misfit() -> None:
    text = "".join(
        bars(step) + WIPE + f"{{'loss': 0.5, 'epoch': {epoch}}}\n" + bars(step)
        for step, epoch in ((100, 0.1), (200, 0.2), (100, 0.1), (200, 0.2))
    )
    found, warnings = of_text(text)
    assert [block.step for block in found] == [100, 200, 100, 200]
    assert warnings == []


def test_numbers_of_transformers_5_are_text_of_4_digits() -> None:
    many = "{'loss': '-0.001234', 'num_tokens': '4.155e+06', 'reward': None, 'epoch': '0.1'}"
    few = "{'loss': '0', 'num_tokens': '1067'}"
    found, warnings = of_text(f"{many}\n{few}\n")
    assert [block.values for block in found] == [{"loss": -0.001234, "epoch": 0.1}, {"loss": 0.0, "num_tokens": 1067.0}]
    assert [words.split(":")[0] for _, words in warnings[:2]] == ["reward", "num_tokens"]


@pytest.mark.parametrize(
    "text",
    [
        "{'role': 'user', 'content': 'What is 2 + 2?'}\n",
        "│ the answer is {'loss': 9.0, 'reward_std': 1.0} │\n",
        "completion: {'loss': 9.0, 'reward_std': 1.0}\n",
        "{'loss'}\n",
        "{'loss': {'reward_std': 3}}\n",
        "completions/mean_length: 256   completions/clipped_ratio: 1\n",
        '{"loss": 0.5, "reward_std": 1}\n',
    ],
)
def test_what_only_looks_like_an_entry(text: str) -> None:
    assert of_text(text)[0] == []
    assert READER.recognises(text.encode(), "x.log") is None


def test_supervised_training_is_not_taken_for_it_and_a_run_that_died_is() -> None:
    assert READER.recognises(b"{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 1e-5, 'epoch': 0.1}\n", "x") is None
    died = b'File "/x/trl/trainer/grpo_trainer.py", line 3, in _generate\n'
    assert READER.recognises(died, "x") is not None


def test_an_entry_that_a_bar_is_drawn_into_is_left_out() -> None:
    found, warnings = of_text(ENTRY + "\n{'loss': 0.25, 'grad_nor" + bars(11) + "\nm': 1.0}\n" + ENTRY + "\n")
    assert [block.line for block in found] == [1, 4]
    assert any("left out" in words for line, words in warnings if line == 2)


def test_a_line_that_ends_where_no_terminal_wraps_it_does_not_go_on() -> None:
    found, warnings = of_text(ENTRY[:20] + "\n" + ENTRY[20:] + "\n")
    assert found == []
    assert any("left out" in words for _, words in warnings)


def test_the_file_ends_within_an_entry() -> None:
    found, warnings = of_text(ENTRY + "\n{'loss': 0.25, 'reward_std': 0.12")
    assert [block.values for block in found][1:] == [{"loss": 0.25}]
    assert any("its last value was left out" in words for _, words in warnings)


@given(st.integers(0, 6000))
@settings(max_examples=60)
def test_a_log_that_is_cut_reads_the_same_as_far_as_it_goes(at: int) -> None:
    log = Path(LOGS / DIRECT).read_bytes()
    start = log.index(b"{'loss'") - 1000
    whole, _ = of_text(log[start : start + 8000])
    part, _ = of_text(log[start : start + 1000 + at])
    for block, same in zip(part, whole, strict=False):
        assert block.values.items() <= same.values.items()
    assert part[:-1] == whole[: max(0, len(part) - 1)]


@given(
    st.lists(
        st.sampled_from(["{'loss': ", "'", "}", "\r", "\n", bars(3), WIPE, "0.5", ", ", "nan", "\x1b[A", ENTRY])
        | st.text(max_size=5),
        max_size=25,
    ).map("".join)
)
@settings(max_examples=100)
def test_rubbish_never_raises_nor_hides_what_follows(rubbish: str) -> None:
    READER.recognises(rubbish.encode(), "x")
    of_text(rubbish)
    found, _ = of_text(rubbish + "\n\n" + ENTRY + "\n")
    assert VALUES.items() <= found[-1].values.items()


@given(st.dictionaries(st.from_regex(r"[a-z_/]{1,20}", fullmatch=True), st.floats(), max_size=15))
@settings(max_examples=60)
def test_what_is_written_is_read(values: dict[str, float]) -> None:
    written = {"loss": 0.5} | values | {"epoch": 0.25}
    written.pop("step", None)
    (block,), _ = of_text(f"{written}\n")
    assert repr(block.values) == repr(written)
