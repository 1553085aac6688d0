"""JSON lines: what each writer's shape becomes, and that rubbish neither raises nor becomes a number."""

import io
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.readers.json_lines import JsonLines
from harness.ingest.reading import UNKNOWN, Block

READER = JsonLines()
Warnings = list[tuple[int, str]]


def of(text: str | bytes) -> tuple[list[Block], Warnings]:
    warnings: Warnings = []
    data = text if isinstance(text, bytes) else text.encode()
    return list(READER.blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


def test_verl_s_file_logger() -> None:
    text = '{"step":1,"data":{"actor/pg_loss":0.25,"timing_s/gen":2,"training/ok":true}}\n'
    assert of(text) == ([Block(1, 1, "training", {"actor/pg_loss": 0.25, "timing_s/gen": 2.0, "training/ok": 1.0})], [])
    found = READER.recognises(text.encode(), "run.jsonl")
    assert found is not None
    assert (found.framework, found.shape) == ("verl", "JSON lines")


def test_two_processes_of_prime_rl_in_one_file_are_told_apart() -> None:
    trainer = {"step": 3, "time": 17.5, "time/step": 9.0, "time/forward_backward": 4.0}
    blocks, warnings = of(f'{json.dumps(trainer)}\n{{"step": 3, "time/step": 8.0, "progress/tokens": 4096}}\n')
    assert [(block.step, block.scope, block.values["time/step"]) for block in blocks] == [
        (3, "trainer", 9.0),
        (3, "orchestrator", 8.0),
    ]
    assert warnings == []


def test_nested_objects_words_and_what_is_no_number() -> None:
    long = "x" * 500
    record = {
        "global_step": 7,
        "a": {"b": {"c": 1.5}, "d": None},
        "mode": "sync",
        "l": [1],
        "text": long,
        "n": math.nan,
    }
    (block,), warnings = of(json.dumps(record) + "\n")
    assert (block.step, block.words) == (7, {"mode": "sync"})
    assert block.values.keys() == {"a/b/c", "n"}
    assert math.isnan(block.values["n"])
    assert [words.split(":")[0] for _, words in warnings] == ["l", "text", "a/d"]


def test_half_a_character_becomes_one_that_can_be_written() -> None:
    (block,), _ = of('{"step": 1, "\\ud800x": 1.0, "\\u00e9": 2.0, "who": "\\udfff"}\n')
    assert (block.values, block.words) == ({"?x": 1.0, "é": 2.0}, {"who": "?"})


def test_a_number_that_json_makes_infinite_is_left_out() -> None:
    (block,), warnings = of(f'{{"step": 1, "a": 1e999, "b": 1{"0" * 400}, "c": 2}}\n')
    assert block.values == {"c": 2.0}
    assert len(warnings) == 2
    (block,), warnings = of('{"step": 1, "a": -Infinity}\n')
    assert (block.values, warnings) == ({"a": -math.inf}, [])


@pytest.mark.parametrize("step", ["null", '"3"', "1.5", "true", "1e300", "[1]"])
def test_a_step_that_is_no_whole_number_is_none(step: str) -> None:
    blocks, _ = of(f'{{"step": {step}, "loss": 0.5}}\n')
    assert [block.step for block in blocks] == [None]


def test_twice_in_one_object_is_said() -> None:
    (block,), warnings = of('{"step": 1, "loss": 0.5, "loss": 0.75, "why": "\\"a\\":"}\n')
    assert block.values == {"loss": 0.75}
    assert warnings == [(1, "loss: twice in one object, the last one holds")]


def test_a_torn_last_line_is_left_out_and_a_whole_one_without_an_end_is_not() -> None:
    blocks, warnings = of('{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.2')
    assert [block.step for block in blocks] == [1]
    assert warnings == [(2, "the file ends within this line: left out")]
    blocks, warnings = of('{"step": 1, "loss": 0.5}\r\n\r\n{"step": 2, "loss": 0.25}')
    assert [(block.step, block.line) for block in blocks] == [(1, 1), (2, 3)]
    assert warnings == []


def test_a_kind_of_warning_is_said_once_and_counted() -> None:
    _, warnings = of("no\n" * 1000)
    assert warnings == [(1, "no JSON object: line left out"), (0, "no JSON object: line left out (999 times more)")]


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ('{"step": 1, "loss": 0.5}\n', UNKNOWN),
        ('{"step": 1, "actor/pg_loss": 0.5, "timing_s/update_actor": 3.0}\n', "verl"),
        ('{"question": "6 x 7", "answer": "42"}\n', None),
        ('{"step": 1, "text": "no number"}\n', None),
        ("step:1 - actor/pg_loss:0.5\n", None),
        ('[{"step": 1, "loss": 0.5}]\n', None),
    ],
)
def test_whose_lines_these_are(text: str, framework: str | None) -> None:
    found = READER.recognises(text.encode(), "x")
    assert (found and found.framework) == framework


KEYS = st.from_regex(r"[a-z_/@.]{1,12}", fullmatch=True).filter(lambda key: key not in ("step", "_step", "global_step"))


@settings(max_examples=60)
@given(st.lists(st.dictionaries(KEYS, st.floats(), min_size=1, max_size=8), min_size=1, max_size=5), st.data())
def test_what_is_written_is_read_and_a_cut_loses_only_what_it_cuts(
    rows: list[dict[str, float]], data: st.DataObject
) -> None:
    lines = [json.dumps({"step": step, **row}).encode() + b"\n" for step, row in enumerate(rows)]
    text = b"".join(lines)
    blocks, warnings = of(text)
    assert [(block.step, repr(block.values)) for block in blocks] == [(i, repr(row)) for i, row in enumerate(rows)]
    assert warnings == []
    at = data.draw(st.integers(0, len(text)))
    whole = text[:at].count(b"\n")
    assert repr(of(text[:at])[0][:whole]) == repr(blocks[:whole])
    assert len(of(text[:at])[0]) <= whole + 1


@settings(max_examples=60)
@given(st.binary(max_size=300) | st.text(alphabet='{}[]":, \n0123456789eE.-+naflstru\\', max_size=120))
def test_rubbish_never_raises(rubbish: bytes | str) -> None:
    data = rubbish if isinstance(rubbish, bytes) else rubbish.encode()
    READER.recognises(data, "x")
    of(data)
    good = b'{"step": 1, "loss": 0.5}\n'
    assert of(data.replace(b"\n", b"") + b"\n" + good)[0][-1].values == {"loss": 0.5}


def test_depth_without_end() -> None:
    blocks, warnings = of('{"a":' * 100_000 + "\n" + '{"step": 1, "loss": 0.5}\n')
    assert len(blocks) == 1
    assert len(warnings) == 1


def test_more_keys_than_any_log_has() -> None:
    record = {"step": 1} | {f"key{number}": 1.5 for number in range(100_001)}
    blocks, warnings = of(json.dumps(record) + "\n" + '{"step": 2, "loss": 0.5}\n')
    assert [block.step for block in blocks] == [2]
    assert len(warnings) == 1
