"""W&B's files: a real run of two versions of the library, and what a kill or damage leaves of them."""

import io
import json
import math
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.readers.wandb_offline import WandbConfig, WandbRun, WandbSummary
from harness.ingest.reading import UNKNOWN, Block, Reader
from tests import DATA

RUNS = {
    version: next((DATA / "formats" / version).glob("*.wandb")).read_bytes() for version in ("wandb_0.12", "wandb_0.31")
}
FIRST_STEP = {"actor/pg_loss": 0.1, "actor/grad_norm": 2.5, "critic/score/mean": 0.125, "timing_s/gen": 26.5}
FIRST_STEP |= {"timing_s/step": 41.0, "perf/total_num_tokens": 1829.0, "training/ok": 1.0, "odd/inf": math.inf}
FIRST_STEP |= {"nested/a": 1.5, "nested/b/c": 2.0}
SETTINGS = {"trainer/n_gpus_per_node": 8.0, "trainer/nnodes": 1.0, "actor_rollout_ref/actor/optim/lr": 1e-6}
TORN = "the file ends within a record: left out"


def of(data: bytes, reader: Reader | None = None) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list((reader or WandbRun()).blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


@pytest.mark.parametrize("version", RUNS)
def test_a_real_run(version: str) -> None:
    found = WandbRun().recognises(RUNS[version], "x.wandb")
    assert found is not None
    assert found.framework == "verl"
    blocks, warnings = of(RUNS[version])
    assert warnings == []
    assert [(block.kind, block.step) for block in blocks] == [
        ("config", None),
        ("validation", 0),
        ("training", 1),
        ("training", 2),
        ("training", 3),
        ("summary", None),
    ]
    assert blocks[0].values == SETTINGS
    assert blocks[0].words == {"algorithm/adv_estimator": "grpo"}
    first = dict(blocks[2].values)
    assert math.isnan(first.pop("odd/nan"))
    assert first.pop("_timestamp") > 1.79e9
    assert first.pop("_runtime") >= 0
    assert first == FIRST_STEP
    assert blocks[2].words == {"odd/text": "hello"}
    assert blocks[-1].values["best"] == 0.9


def record(content: bytes, kind: int = 1) -> bytes:
    return struct.pack("<IHB", zlib.crc32(bytes([kind]) + content), len(content), kind) + content


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    low = []
    while number > 127:
        low.append(number & 127 | 128)
        number >>= 7
    return bytes([*low, number])


def message(**values: str) -> bytes:
    """A history record with these values as JSON."""
    items = [field(2, key.encode()) + field(16, value.encode()) for key, value in values.items()]
    return field(2, b"".join(field(1, item) for item in items))


HEAD = RUNS["wandb_0.31"][:7]


def test_a_record_over_two_blocks_of_the_file() -> None:
    other = record(field(99, b"x" * 32_720))
    whole = message(step="1", loss="0.5")
    left = 32 * 1024 - len(HEAD) - len(other) - 7
    assert 0 < left < len(whole)
    blocks, warnings = of(HEAD + other + record(whole[:left], 2) + record(whole[left:], 4))
    assert [(block.step, block.values) for block in blocks] == [(1, {"loss": 0.5})]
    assert warnings == []
    assert of(HEAD + other + record(whole[:left], 2)) == ([], [(0, TORN)])


def test_values_that_are_no_json_or_no_number() -> None:
    data = HEAD + record(message(a="0.5", b="nonsense", c="1e999", d="[1]", e="[" * 9999, _step="7"))
    blocks, warnings = of(data)
    assert [(block.step, block.values, block.words) for block in blocks] == [(7, {"a": 0.5}, {"c": "1e999"})]
    assert sorted(words.split(":")[0] for _, words in warnings) == ["b", "d", "e"]


def test_a_step_of_its_own_goes_before_w_b_s_count_of_calls() -> None:
    blocks, _ = of(HEAD + record(message(loss="1", _step="40", **{"train/global_step": "10"})))
    assert [(block.step, block.values) for block in blocks] == [(10, {"loss": 1.0, "_step": 40.0})]


def test_damage_costs_the_rest_of_its_block_alone() -> None:
    first = HEAD + record(message(loss="1", step="1"))
    damaged = bytearray(record(message(loss="2", step="2")))
    damaged[-1] ^= 1
    block = (first + bytes(damaged)).ljust(32 * 1024, b"\0")
    blocks, warnings = of(block + record(message(loss="3", step="3")))
    assert [block.step for block in blocks] == [1, 3]
    assert warnings == [(0, "a damaged record: the rest of its block left out")]


@settings(max_examples=30)
@given(st.sampled_from(sorted(RUNS)), st.data())
def test_cut_or_flipped_it_never_gives_another_number(version: str, data: st.DataObject) -> None:
    run = RUNS[version]
    at = data.draw(st.integers(0, len(run) - 1))
    good = {(block.step, key, repr(value)) for block in of(run)[0] for key, value in block.values.items()}
    for broken in (run[:at], run[:at] + bytes([run[at] ^ data.draw(st.integers(1, 255))]) + run[at + 1 :]):
        WandbRun().recognises(broken, "x")
        blocks = [block for block in of(broken)[0] if block.kind != "summary"]
        assert {(block.step, key, repr(value)) for block in blocks for key, value in block.values.items()} <= good


def test_the_summary_file() -> None:
    content = {"actor/pg_loss": 0.5, "timing_s/gen": 3, "_step": 9, "_runtime": 4.5, "_wandb": {"runtime": 4}}
    text = json.dumps(content).encode()
    found = WandbSummary().recognises(text, "files/wandb-summary.json")
    assert found is not None
    assert found.framework == "verl"
    ((block,), warnings) = of(text, WandbSummary())
    assert block.kind == "summary"
    assert block.step is None
    assert block.values == {"actor/pg_loss": 0.5, "timing_s/gen": 3.0, "_step": 9.0, "_runtime": 4.5}
    assert warnings == []
    assert of(text[:-9], WandbSummary()) == ([], [(1, "no JSON object, or one that was cut: nothing read")])


CONFIG = b"""wandb_version: 1

_wandb:
  desc: null
  value:
    cli_version: 0.13.4
trainer:
  desc: null
  value:
    n_gpus_per_node: 8
    at: 12:30
    logger:
    - wandb
lr:
  desc: null
  value: 1.0e-06
name:
  value: run
"""


def test_the_settings_file() -> None:
    found = WandbConfig().recognises(CONFIG, "config.yaml")
    assert found is not None
    assert found.framework == UNKNOWN
    ((block,), warnings) = of(CONFIG, WandbConfig())
    assert (block.kind, block.step, warnings) == ("config", None, [])
    assert block.values == {"trainer/n_gpus_per_node": 8.0, "lr": 1e-6}
    assert block.words == {"trainer/at": "12:30", "name": "run"}


@pytest.mark.parametrize("rubbish", [b"a: [", b"- 1", b"a: " + b"[" * 5000, b"\xff\xfe", b"&a [*a, *a]", b""])
def test_settings_that_are_none(rubbish: bytes) -> None:
    blocks, warnings = of(rubbish, WandbConfig())
    assert blocks == []
    assert len(warnings) == 1


def test_settings_that_grow_without_end() -> None:
    levels = "\n".join(f"a{level + 1}: &a{level + 1} {{x: *a{level}, y: *a{level}}}" for level in range(40))
    text = f"a0: &a0 {{x: 1}}\n{levels}\nb: {{value: *a40}}\n".encode()
    ((block,), _) = of(text, WandbConfig())
    assert len(block.values) <= 100_000
