"""What may stand on an axis: a sentence, values of its vocabulary, a source and a date, or it does not load."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.contract.axes import AXES, complaint_of

GOOD: dict[str, Any] = {"declared": "vLLM", "values": ["vllm"], "source": "a/file.py", "date": "2026-11-30"}
WAS = {"declared": "SGLang", "version": "0.1", "until": "0.2", "source": "a/file.py at v0.1", "date": "2026-11-30"}


def complaint(**changes: Any) -> str | None:
    return complaint_of({"rollout_engine": {key: v for key, v in (GOOD | changes).items() if v is not ...}})


def test_what_is_whole_loads() -> None:
    assert complaint_of({}) is None
    assert complaint() is None
    assert complaint(version="0.2", was=[WAS]) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": ...}, "axis rollout_engine: it says no source: a value without a source and a date does not load"),
        ({"source": " "}, "it says no source"),
        ({"date": ...}, "it says no date"),
        ({"date": "last week"}, r"last week is no date \(YYYY-MM-DD\)"),
        ({"declared": None}, "it says no declared"),
        ({"values": ...}, "values is no list of words of its vocabulary"),
        ({"values": "vllm"}, "values is no list"),
        ({"values": []}, "values is no list"),
        ({"values": ["vlm"]}, r"there is no value vlm; did you mean vllm\?"),
        ({"values": ["torch"]}, "there is no value torch; there are transformers, vllm"),
        ({"values": [["vllm"]]}, "there is no value"),
        ({"sources": "x"}, r"there is no entry sources; did you mean source\?"),
        ({"was": [{**WAS, "source": ""}]}, "was, entry 1: it says no source"),
        ({"was": [WAS, {**WAS, "until": None}]}, "was, entry 2: it says no until"),
        ({"was": ["vLLM"]}, "was, entry 1: it is no mapping"),
        ({"was": "vLLM"}, "was is no list"),
        ({"unread": "vllm"}, "unread is no list"),
        ({"unread": ["sglan"]}, r"there is no value sglan to be unread; did you mean sglang\?"),
        ({"unread": ["vllm"]}, "vllm is declared and unread at once"),
    ],
)
def test_what_is_not_whole_is_one_line(changes: dict[str, Any], words: str) -> None:
    said = complaint(**changes)
    assert said
    assert "\n" not in said
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(said)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        (None, "axes is no mapping"),
        ({"rollout_engin": GOOD}, "there is no axis rollout_engin; did you mean rollout_engine?"),
        ({"queue": "none"}, "axis queue is no mapping"),
    ],
)
def test_an_axis_that_there_is_not(axes: Any, words: str) -> None:
    assert str(complaint_of(axes)).startswith(words)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([*GOOD, *AXES, "vllm", "was"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, *AXES, "was"]), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_rubbish_is_refused_and_never_raises(axes: Any) -> None:
    said = complaint_of(axes)
    assert axes == {} or said


def test_the_vocabulary_is_explained() -> None:
    for name, kind in AXES.items():
        assert name.isidentifier()
        assert kind.asks.endswith("?")
        assert len(kind.values) == len(set(kind.values)) >= 2
        assert all(value.isidentifier() and meaning for value, meaning in kind.values.items())
