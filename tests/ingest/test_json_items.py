"""JSON documents item by item: each with its line, whole items of one that was cut, nothing of rubbish."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest import json_items as module
from harness.ingest.json_items import Item, json_items

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def read(data: bytes) -> tuple[list[Item], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(json_items(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


@settings(max_examples=60)
@given(st.lists(VALUES, max_size=5) | st.dictionaries(st.text(max_size=4), VALUES, max_size=5), st.booleans())
def test_what_is_written_is_read(document: list[object] | dict[str, object], indented: bool) -> None:
    items, warnings = read(json.dumps(document, indent=1 if indented else None).encode())
    named = document.items() if isinstance(document, dict) else [("", value) for value in document]
    assert [(item.key, item.value) for item in items] == list(named)
    assert warnings == []


@settings(max_examples=60)
@given(st.integers(1, 60))
def test_a_document_that_was_cut_has_its_whole_items_and_a_warning(cut: int) -> None:
    whole = b'{\n "a": {"x": [1, 2]},\n "b": "text, with }",\n "c": 17, "d": -1.5e3\n}'
    items, warnings = read(whole[:cut])
    everything, _ = read(whole)
    assert items == everything[: len(items)]
    assert len(warnings) == 1


def test_lines_are_those_of_the_file() -> None:
    items, _ = read(b'\n[\n {"a": 1},\n\n {"a":\n 2}, 3]')
    assert [item.line for item in items] == [3, 5, 6]


@pytest.mark.parametrize("data", [b"", b"text", b'"text"', b"17", b"\xff\xfe{"])
def test_what_is_no_list_or_object_is_told(data: bytes) -> None:
    items, warnings = read(data)
    assert items == []
    assert len(warnings) == 1


@settings(max_examples=60)
@given(st.binary(max_size=80))
def test_rubbish_never_raises(rubbish: bytes) -> None:
    read(b"{" + rubbish)
    read(b"[" + rubbish)
    read(b"[" * 100_000)


def test_a_document_that_is_too_large_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 10)
    items, warnings = read(b"[1, 2, 3, 4, 5]")
    assert items == []
    assert "not read" in warnings[0][1]
