"""SkyRL's console: stamps, dicts and bars of one step put together; a nested timer counts once, a hang is said."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.audit.readings import readings
from harness.ingest.cases import Place, cases_of
from harness.ingest.examine import examine
from harness.ingest.keymap import key_map
from harness.ingest.readers.skyrl_console import SkyRlConsole
from harness.ingest.reading import Block
from tests import DATA
from tests.ingest.readers.cuts import Read, invented, read

LOGS = DATA / "real_logs" / "skyrl"
STEP, FRAGMENTS = "skyrl_gsm8k_sync_step_2026-03.log", "skyrl_async_metrics_fragments.log"
READER = SkyRlConsole()
KEYS = key_map("skyrl")


def of_log(name: str) -> Read:
    assert READER.recognises((LOGS / name).read_bytes(), name) is not None
    return read(READER, (LOGS / name).read_bytes())


def stages(values: dict[str, float]) -> dict[str, float]:
    """What counts as a stage of a step, by the key map."""
    found = {key: value for key, value in values.items() if (m := KEYS.meaning(key)) and m.quantity == "stage_seconds"}
    return {key.removeprefix("timing/"): value for key, value in found.items()}


def test_the_stages_of_the_real_step_add_up_to_it() -> None:
    step, following = of_log(STEP)[0]
    assert (step.step, following.step) == (1, None)
    assert stages(step.values) == {
        "convert_to_training_input": 1.54,
        "fwd_logprobs_values_reward": 377.36,
        "compute_advantages_and_returns": 0.11,
        "train_critic_and_policy": 866.51,
        "sync_weights": 7.04,
    }
    named = sum(stages(step.values).values())
    assert named == pytest.approx(1252.6, abs=0.05)
    generate = following.values["timing/generate"]
    assert generate == 78.47
    assert named + generate == pytest.approx(1331.1, abs=0.1)
    assert step.values["timing/step"] == 1331.13


def test_a_nested_timer_is_not_counted_beside_its_parent() -> None:
    values = of_log(STEP)[0][0].values
    assert values["timing/policy_train"] == 866.49 <= values["timing/train_critic_and_policy"] == 866.51
    assert "policy_train" not in stages(values)
    both = sum(stages(values).values()) + values["timing/policy_train"]
    assert both > values["timing/step"]  # what a sum of all stamps would say


def test_the_dicts_length_is_the_padded_width() -> None:
    values = of_log(STEP)[0][0].values
    padded, mean = values["response_length"], values["avg_response_length"]
    assert (padded, round(mean, 2)) == (1024.0, 273.68)
    assert padded / mean == pytest.approx(3.7, abs=0.05)
    assert values["batch_num_seq"] * values["batch_padded_seq_len"] == pytest.approx(6.0e6, rel=0.001)
    told = {key: KEYS.meaning(key) for key in ("response_length", "avg_response_length")}
    assert [m and m.quantity for m in told.values()] == [None, "response_length_mean"]
    assert [m and m.same for m in told.values()] == [False, False]


def test_the_log_ends_within_a_step_and_says_so() -> None:
    found, warnings = of_log(STEP)
    assert [line for line, _ in warnings] == [20]
    assert warnings[0][1].startswith("'step' was started here and is never over")
    assert found[1].values["reward/avg_raw_reward"] == 0.2173828125
    assert found[1].words == {"mode": "sync"}


def test_fragments_of_asynchronous_runs() -> None:
    found, warnings = of_log(FRAGMENTS)
    mirror, told, hung = found
    assert (mirror.step, mirror.scope, mirror.values["reward/avg_raw_reward"]) == (7, "mirror", -0.9194)
    assert (told.step, told.line) == (1, 5)
    assert told.values == {"async/staleness_max": 0, "async/staleness_mean": 0, "trainer/global_step": 1}
    assert (hung.step, hung.values) == (None, {"timing/wait_for_generation_buffer": 1415.15})
    assert hung.words == {"mode": "async"}
    assert [line for line, _ in warnings] == [9, 15, 16]
    assert warnings[2][1].startswith("'sync_weights' was started here and is never over, within 'step' of line 12")


def test_every_key_of_the_real_logs_is_known_and_nobody_is_accused() -> None:
    for name in (STEP, FRAGMENTS):
        assert all(KEYS.meaning(key) for block in of_log(name)[0] for key in block.values)
    assert examine([str(LOGS)]).findings == []


def stamp(name: str, seconds: float | None = None, line: str = "") -> str:
    head = "(skyrl_entrypoint pid=8) 2026-03-26 14:44:59.431 | INFO     | skyrl.train.trainer:train:261 - "
    told = f"Started: '{name}'" if seconds is None else f"Finished: '{name}', time cost: {seconds:.2f}s"
    return f"{head}{line or told}\n"


def synchronous(step: int, generate: float = 5.0, train: float = 3.0) -> str:
    inner = [stamp("generate"), stamp("generate", generate), stamp("train_critic_and_policy"), stamp("policy_train")]
    inner += [stamp("policy_train", train), stamp("train_critic_and_policy", train)]
    whole = [stamp("step"), *inner, stamp("step", generate + train)]
    status = stamp("", line=f"{{'final_loss': 0.5, 'policy_lr': 1e-06, 'response_length': {step}.0}}")
    return (
        "".join(whole) + status + f"Training Batches Processed:  {step}%|█▍        | {step}/70 [22:36<2:15:37, 6s/it]\n"
    )


def test_steps_are_numbered_by_the_bar_after_them() -> None:
    start = stamp("init_weight_sync_state") + stamp("init_weight_sync_state", 2) + stamp("sync_weights", 9)
    end = stamp("save_checkpoints") + stamp("save_checkpoints", 7)
    found, warnings = read(READER, (start + synchronous(4) + synchronous(5) + end).encode())
    assert warnings == []
    assert [(block.step, block.kind, block.scope) for block in found] == [
        (None, "summary", "outside of steps"),
        (4, "training", ""),
        (5, "training", ""),
        (None, "summary", "outside of steps"),
    ]
    assert found[0].values == {"timing/init_weight_sync_state": 2, "timing/sync_weights": 9}
    assert found[3].values == {"timing/save_checkpoints": 7}


def test_dynamic_sampling_takes_several_turns_of_one_step() -> None:
    turn = stamp("step") + stamp("generate") + stamp("generate", 2) + stamp("step", 2)
    found, warnings = read(READER, (synchronous(8) + turn + turn + synchronous(11) + synchronous(12)).encode())
    assert warnings == []
    assert [block.values["timing/generate"] for block in found] == [5, 9, 5]
    assert [block.values["timing/step"] for block in found] == [8, 12, 8]
    assert [block.step for block in found] == [8, None, None]  # the bar has counted three batches for the second one


def test_a_restart_begins_anew_and_the_step_that_died_is_not_added_to_the_next() -> None:
    died = stamp("step") + stamp("generate") + stamp("generate", 5) + stamp("fwd_logprobs_values_reward")
    again = stamp("init_weight_sync_state") + stamp("init_weight_sync_state", 1)
    before = synchronous(3) + synchronous(4)
    found, warnings = read(READER, (before + died + again + synchronous(4)).encode())
    assert [block.values.get("timing/generate") for block in found] == [5, 5, 5, None, 5]
    assert [block.step for block in found] == [3, 4, None, None, 4]
    assert [line for line, _ in warnings] == [before.count("\n") + 4]
    assert "'fwd_logprobs_values_reward'" in warnings[0][1]


METRICS = "{'async/staleness_mean': '1.2500',\n 'async/staleness_max': 2,\n 'reward/avg_raw_reward': '0.5000'}\n"
TIMES = "{'timing/run_training': '60.1234',\n 'timing/wait_for_generation_buffer': '1.0000'}\n"


@pytest.mark.parametrize("noise", ["", "(RolloutActor pid=3) INFO: another process\n", "%|█████     | 2581/5120\n"])
def test_the_console_tracker_writes_dicts_over_several_lines_in_two_parts(noise: str) -> None:
    step = stamp("step") + stamp("wait_for_generation_buffer") + stamp("wait_for_generation_buffer", 1)
    step += stamp("run_training") + stamp("run_training", 60.12) + stamp("step", 62)
    metrics, times = (noise + text.replace("\n ", f"\n{noise} ") for text in (METRICS, TIMES))
    text = step + stamp("", line="Step 12: ") + metrics + stamp("", line="Step 12: ") + times + stamp("step")
    block, *rest = read(READER, text.encode())[0]
    assert (block.step, rest) == (12, [])
    assert block.values["timing/run_training"] == 60.1234  # more digits than the stamp has
    assert (block.values["async/staleness_mean"], block.values["async/staleness_max"]) == (1.25, 2)
    assert block.words == {"mode": "async"}


def test_asynchronous_the_parent_of_stages_is_not_counted_beside_them() -> None:
    values = {"step": 100.0, "wait_for_generation_buffer": 30.0, "run_training": 60.0, "train_critic_and_policy": 40.0}
    values |= {"fwd_logprobs_values_reward": 19.0, "sync_weights": 9.0}
    text = "".join(stamp(name, seconds) for name, seconds in values.items()) + stamp("", line="{'final_loss': 0.1}")
    blocks = READER.blocks(io.BytesIO(text.encode()), lambda *_: None)
    (case,) = cases_of(blocks, Place("x", KEYS))
    assert readings(case)["sequential_seconds"] == 30 + 40 + 19 + 9


def test_an_evaluation_before_training_is_no_step() -> None:
    text = (
        stamp("eval")
        + stamp("eval", 4)
        + stamp("", line="Step 0: ")
        + "{'eval/all/avg_score': '0.2500',\n 'timing/eval_generate': '3.0000'}\n"
    )
    found, _ = read(READER, (text + synchronous(1)).encode())
    assert [(block.step, block.kind) for block in found] == [(0, "validation"), (None, "summary"), (1, "training")]


@pytest.mark.parametrize(
    "text", ["total: 5, batch_size: 32\n", "Step 3: loading\n", "{'prompt': 7}\n", "x | y - Step 9: {\n"]
)
def test_what_another_program_prints_is_no_metric(text: str) -> None:
    assert read(READER, text.encode())[0] == []


@settings(max_examples=40)
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_rubbish_never_raises(rubbish: str | bytes) -> None:
    data = rubbish if isinstance(rubbish, bytes) else rubbish.encode("utf-8", "surrogatepass")
    READER.recognises(data, "x")
    for begin in ("Step 3: {'policy/x': ", "WANDB_MIRROR kind=train step=1 metrics={", "Finished: '"):
        read(READER, begin.encode() + data)
    found, _ = read(READER, data + b"\n" + synchronous(8).encode())
    wanted: Block = read(READER, synchronous(8).encode())[0][0]
    assert wanted.values.items() <= found[-1].values.items()


@settings(max_examples=40)
@given(st.sampled_from([STEP, FRAGMENTS]), st.floats(0, 1))
def test_a_log_that_ends_anywhere_invents_nothing(name: str, share: float) -> None:
    data = (LOGS / name).read_bytes()
    assert list(invented(READER, data, int(share * len(data)))) == []
