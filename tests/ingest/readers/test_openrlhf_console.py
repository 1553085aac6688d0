"""OpenRLHF's console: rounds and bars apart, a sum and a clock under one name, and runs that end with nothing."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.examine import examine
from harness.ingest.keymap import key_map
from harness.ingest.readers.openrlhf_console import HANG, UNFINISHED, OpenRlhfConsole
from harness.ingest.reading import Block
from tests import DATA
from tests.ingest.readers.cuts import Read, invented, read

LOGS = DATA / "real_logs" / "openrlhf"
PASTES, SYNC, ASYNC = (
    "openrlhf_log_lines.log",
    "openrlhf_0.11.2_sync_4_rounds.log",
    "openrlhf_0.11.2_async_8_rounds.log",
)
READER = OpenRlhfConsole()
PARTS = ("timing/make_experience", "timing/ppo_train", "timing/broadcast", "timing/generation")


def of_log(name: str) -> Read:
    assert READER.recognises((LOGS / name).read_bytes(), name) is not None
    return read(READER, (LOGS / name).read_bytes())


def rounds(name: str) -> list[Block]:
    return [block for block in of_log(name)[0] if not block.scope and block.kind == "training"]


@pytest.mark.parametrize(("name", "last"), [(SYNC, 4), (ASYNC, 8)])
def test_every_round_once_and_every_key_known(name: str, last: int) -> None:
    found, warnings = of_log(name)
    assert [block.kind for block in found if not block.scope] == ["config", *["training"] * last]
    assert [block.step for block in rounds(name)] == list(range(1, last + 1))
    assert warnings == []
    assert all(key_map("openrlhf").meaning(key) for block in found for key in block.values)


@pytest.mark.parametrize("name", [SYNC, ASYNC])
def test_a_bar_is_no_round(name: str) -> None:
    bars = [block for block in of_log(name)[0] if block.scope]
    assert {block.scope for block in bars} == {"Train epoch [1/1]"}
    assert {block.step for block in bars} == {None}
    assert len(bars) == len(rounds(name))  # one micro-batch a round in these runs
    for bar, done in zip(bars, rounds(name), strict=True):
        assert bar.values["act_loss"] == pytest.approx(done.values["policy_loss"], rel=5e-3, abs=1e-12)


def test_step_total_is_a_sum_here_and_a_clock_there() -> None:
    for block in rounds(SYNC):
        assert block.words == {"mode": "sync"}
        assert block.values["timing/step_total"] == pytest.approx(sum(block.values[key] for key in PARTS), rel=1e-12)
    assert all(block.words == {"mode": "async"} for block in rounds(ASYNC))
    first, seventh = rounds(ASYNC)[0].values, rounds(ASYNC)[6].values
    assert first["timing/step_total"] > 1.5 * sum(first[key] for key in PARTS)  # the start is in it
    assert seventh["timing/generation"] > seventh["timing/step_total"]  # beside the training of another round
    keys = key_map("openrlhf")
    told = [(m.quantity, m.measure) for mode in ("sync", "async", None) if (m := keys.meaning(PARTS[0], None, mode))]
    assert len(set(told)) == 1
    totals = [keys.meaning("timing/step_total", None, mode) for mode in ("sync", "async", None)]
    assert [m and (m.quantity, m.measure) for m in totals] == [
        (None, "t_seq_seconds"),
        ("step_seconds", "step_seconds"),
        (None, "step_seconds"),
    ]


def test_settings_are_kept_as_printed_and_secrets_are_not() -> None:
    words = of_log(ASYNC)[0][0].words
    told = {key: words[key] for key in ("train.async_enable", "train.async_queue_size", "actor.eps_clip_low_high")}
    assert told == {
        "train.async_enable": "True",
        "train.async_queue_size": "1",
        "actor.eps_clip_low_high": "[0.2, 0.2]",
    }
    assert words["actor.adam.lr"] == "0.0003"
    assert words["critic.adam.betas"] == "(0.9, 0.95)"
    assert "logger.wandb.key" not in words
    assert words["logger.wandb.project"] == "'openrlhf_train_ppo'"


def test_pastes_of_bars_hangs_and_nothing() -> None:
    found, warnings = of_log(PASTES)
    (bar,) = found
    assert (bar.step, bar.scope, bar.line) == (2431, "Episode [1/1]", 2)
    assert (bar.values["policy_loss"], bar.values["kl"], bar.values["response_length"]) == (0.0432, 0.0387, 164)
    assert warnings == [(32, HANG), (0, f"{HANG} (2 times more)")]


@pytest.mark.parametrize(("first", "last"), [(3, 17), (18, 29), (30, 36)])
def test_a_run_that_ends_without_a_metric_says_so(first: int, last: int) -> None:
    lines = (LOGS / PASTES).read_bytes().splitlines(keepends=True)
    found, warnings = read(READER, b"".join(lines[first - 1 : last]))
    assert found == []
    assert warnings[-1 if first < 30 else 1] == (0, "no metric in all of it: no round of optimizer steps ended")


def test_the_audit_finds_what_is_so() -> None:
    done = examine([str(LOGS)])
    found = {(finding.where.file.rsplit("/", 1)[-1], finding.rule, finding.where.step) for finding in done.findings}
    cut = {(ASYNC, "all_clipped", step) for step in range(1, 9)}  # its responses all have the length of the limit
    assert found == {(SYNC, "rewards_all_zero", 2), (SYNC, "groups_without_spread", 2), *cut}


LINE = "Global step 7: {'policy_loss': -0.5, 'reward': nan, 'score': np.float32(2.0), 'digits': tensor(0.5)}"
VALUES = {"policy_loss": -0.5, "reward": math.nan, "score": 2.0, "digits": 0.5}


@pytest.mark.parametrize(
    ("line", "mode"),
    [
        (LINE, None),
        ("✨ " + LINE, None),
        ("\x1b[36m(PPOTrainer pid=7)\x1b[0m INFO 11-29 23:55:30 ppo_trainer.py:551] ✨ " + LINE, "sync"),
        ("(TrainingActor pid=7, ip=10.0.0.1) INFO 11-29 23:55:30 ppo_trainer_async.py:244] " + LINE + "\r", "async"),
        ("Episode [1/1]:  2%|▏| 3/128 [00:01<00:20,  5.9it/s]" + LINE + "[32m [repeated 5x across cluster]", None),
    ],
)
def test_prefixes(line: str, mode: str | None) -> None:
    (block,), warnings = read(READER, f"noise\n{line}\nnoise".encode())
    assert (block.step, block.line, repr(block.values)) == (7, 2, repr(VALUES))
    assert block.words == ({"mode": mode} if mode else {})
    assert warnings == []


TIMES = "'timing/make_experience': 1.5, 'timing/ppo_train': 2.25, 'timing/broadcast': 0.25, 'timing/generation': 4.0"


@pytest.mark.parametrize(("total", "mode"), [("8.0", "sync"), ("8.04", None), ("7.0", "async"), ("19.1", "async")])
def test_the_total_itself_tells_the_mode(total: str, mode: str | None) -> None:
    (block,), _ = read(READER, f"Global step 1: {{{TIMES}, 'timing/step_total': {total}}}\n".encode())
    assert block.words.get("mode") == mode


def test_a_bar_is_given_once_for_each_state_of_its_metrics() -> None:
    drawn = [
        (0, ""),
        (0, ", pg=1, rm=0.5"),
        (1, ", pg=1, rm=0.5"),
        (1, ", pg=2, rm=0.5"),
        (2, ", pg=2, rm=0.5"),
        (2, ""),
    ]
    bars = [f"\rTrain epoch [1/1]:  5%|▌ | {at}/2 [00:00<?, ?it/s{told}]" for at, told in drawn]
    found, warnings = read(READER, "".join(bars).encode())
    assert [block.values for block in found] == [{"pg": 1, "rm": 0.5}, {"pg": 2, "rm": 0.5}]
    assert warnings == []


def test_actor_and_critic_draw_bars_of_one_name() -> None:
    bar = "({0} pid=1) Train epoch [1/1]: 50%|▌| {1}/2 [00:00<?, ?it/s, {2}]\n"
    drawn = [
        ("Actor", 0, "act_loss=1"),
        ("Critic", 0, "critic_loss=5"),
        ("Actor", 1, "act_loss=1"),
        ("Critic", 1, "critic_loss=5"),
    ]
    found, _ = read(READER, "".join(bar.format(*one) for one in drawn).encode())
    assert [block.values for block in found] == [{"act_loss": 1}, {"critic_loss": 5}]


def test_what_is_cut_or_no_number_is_named() -> None:
    found, warnings = read(READER, b"Global step 1: {'policy_loss': 0.5, 'reward': None, 'kl': 0.1\n")
    assert found[0].values == {"policy_loss": 0.5}
    assert [words for _, words in warnings] == ["reward: 'None' is no number: left out", UNFINISHED]


@settings(max_examples=40)
@given(st.binary(max_size=300))
def test_rubbish_never_raises(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    read(READER, b"Global step 3: {" + rubbish)
    read(READER, b"Episode [1/1]:  2%|" + rubbish)
    found, _ = read(READER, rubbish.replace(b"\n", b"") + b"\n" + LINE.encode() + b"\n" + rubbish)
    assert repr(VALUES) in [repr(block.values) for block in found]


@settings(max_examples=40)
@given(st.integers(0, (LOGS / SYNC).stat().st_size))
def test_a_log_that_ends_anywhere_invents_nothing(at: int) -> None:
    assert list(invented(READER, (LOGS / SYNC).read_bytes(), at)) == []
