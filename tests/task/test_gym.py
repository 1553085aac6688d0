"""reasoning-gym's entries survive JSON, and its answers are read from tags where a model writes them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.task.gym import pack, read_answer, unpack

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
KEYS = st.text(max_size=5) | st.integers() | st.tuples(st.integers(), st.integers())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_packed_values_come_back_with_their_types(value: Any) -> None:
    back = unpack(json.loads(json.dumps(pack(value))))
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" 12 \n", "12"),
        ("I think <answer>7</answer>", "7"),
        ("<answer>7</answer> no, <answer>\n8 </answer>.", "8"),
        ("<answer>7", "<answer>7"),
        ("", ""),
    ],
)
def test_reading(text: str, answer: str) -> None:
    assert read_answer(text) == answer
