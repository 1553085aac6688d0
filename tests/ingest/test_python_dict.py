"""Python's own writing of a dict: every number as it was, whatever stands beside it, and none that was cut."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.python_dict import number_of, read_dict

KEYS = st.text(min_size=1, max_size=12).filter(lambda key: key.strip() == key and repr(key) == f"'{key}'")
NUMBERS = st.floats() | st.integers(-(10**15), 10**15)


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        ("0.5", 0.5),
        ("-4e-09", -4e-9),
        ("np.float64(0.25)", 0.25),
        ("tensor(3., device='cuda:0')", 3.0),
        ("tensor([1.5])", None),
        ("'0.0000'", 0.0),
        ("True", 1.0),
        ("None", None),
        ("1_000", None),
        ("0x10", None),
        ("12 tokens", None),
        ("[1, 2]", None),
        ("", None),
    ],
)
def test_what_is_a_number(raw: str, number: float | None) -> None:
    assert number_of(raw) == number


def test_what_is_not_finite_is_kept() -> None:
    told = read_dict("{'a': nan, 'b': -inf, 'c': np.float32(inf)}")
    assert math.isnan(told.numbers["a"])
    assert (told.numbers["b"], told.numbers["c"]) == (-math.inf, math.inf)


def test_nested_and_quoted_signs_end_no_item() -> None:
    text = "{'list': [1, {'x': 2}], 'text': 'a, b: {1}', \"it's\": 3, 'last': (4, 5), 'n': 6} and more: 7"
    told = read_dict(text)
    assert told.numbers == {"it's": 3.0, "n": 6.0}
    assert set(told.other) == {"list", "text", "last"}
    assert text[told.end :] == " and more: 7"
    assert told.whole


@pytest.mark.parametrize("end", range(1, 30))
def test_a_cut_item_is_left_out(end: int) -> None:
    text = "{'loss': 0.125, 'kl': 1.5e-05, 'lr': 3}"
    told = read_dict(text[:end])
    assert not told.whole
    assert told.numbers.items() <= {"loss": 0.125, "kl": 1.5e-05}.items()


@settings(max_examples=80)
@given(st.dictionaries(KEYS, NUMBERS, min_size=1, max_size=8))
def test_what_is_written_is_read(values: dict[str, float]) -> None:
    told = read_dict(f"{values!r} | and then")
    assert repr(told.numbers) == repr({key: float(value) for key, value in values.items()})
    assert told.whole


@settings(max_examples=80)
@given(st.text(max_size=80))
def test_rubbish_never_raises(rubbish: str) -> None:
    read_dict("{" + rubbish)
    number_of(rubbish)
