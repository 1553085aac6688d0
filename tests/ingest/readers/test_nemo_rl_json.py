"""NeMo RL's metrics by key: steps as text, in their order; validation and the GPU monitor apart."""

import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.keymap import framework_of
from harness.ingest.readers.nemo_rl_json import NemoRlJson
from harness.ingest.reading import Block

READER = NemoRlJson()
TABLE = {
    "ray/node.0.gpu.0.util": {"1": 50.0, "2": 60.0, "3": 70.0},
    "timing/train/total_step_time": {"2": 8.0, "10": 9.0, "1": 7.0},
    "timing/validation/total_validation_time": {"10": 30.0},
    "train/loss": {"1": 0.5, "2": 0.25, "10": float("nan")},
    "validation/accuracy": {"10": 0.3},
}


def read(data: bytes) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(READER.blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


def test_steps_are_numbers_and_in_their_order() -> None:
    data = json.dumps(TABLE).encode()
    found, warnings = read(data)
    assert READER.recognises(data, "metrics.json") is not None
    training = [block for block in found if block.kind == "training" and not block.scope]
    assert [block.step for block in training] == [1, 2, 10]
    assert training[1].values == {"timing/train/total_step_time": 8.0, "train/loss": 0.25}
    assert [(block.step, len(block.values)) for block in found if block.kind == "validation"] == [(10, 2)]
    assert [block.step for block in found if block.scope == "ray"] == [1, 2, 3]
    assert warnings == []


def test_what_is_no_step_or_no_number_is_told() -> None:
    found, warnings = read(b'{"train/loss": {"1": 0.5, "last": 1, "2": null}, "train/x": 3}')
    assert [(block.step, block.values) for block in found] == [(1, {"train/loss": 0.5})]
    assert len(warnings) == 3


def test_another_document_is_not_taken_for_one() -> None:
    for data in (b'{"train/loss": 0.5}', b'[{"train/loss": {"1": 1}}]', b'{"a": {"1": 2}}', b"\xff\x00"):
        assert READER.recognises(data, "metrics.json") is None


def test_its_loggers_keys_tell_it_and_those_of_any_trainer_do_not() -> None:
    assert framework_of(["train/loss", "train/gen_kl_error", "timing/train/total_step_time"]) == "nemo_rl"
    assert framework_of(["train/loss", "train/grad_norm", "train/learning_rate", "train/epoch"]) != "nemo_rl"
    assert framework_of(["step", "time/forward_backward", "perf/throughput", "optim/lr"]) == "prime_rl"


@settings(max_examples=50)
@given(st.integers(0, len(json.dumps(TABLE))))
def test_a_cut_document_gives_its_whole_keys(cut: int) -> None:
    found, warnings = read(json.dumps(TABLE).encode()[:cut])
    keys = {key for block in found for key in block.values}
    assert list(TABLE)[: len(keys)] == sorted(keys)
    assert len(keys) == len(TABLE) or warnings


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_rubbish_never_raises(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    read(rubbish)
    read(b'{"train/loss": {"1": 1}, ' + rubbish)
