"""A log's lines without what terminals and launchers wrote around them; and that no line is lost or made up."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest import lines as pieces_of
from harness.ingest.clean import Line, lines


class Slow(io.BytesIO):
    """Gives little at a time, as a pipe does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(16)


def read(text: bytes, kind: type[io.BytesIO] = io.BytesIO) -> tuple[list[Line], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(lines(kind(text), lambda *told: warnings.append(told))), warnings


@pytest.mark.parametrize(
    ("raw", "text", "origin", "repeated"),
    [
        (b"plain (not pid=7) [rank0]: text", "plain (not pid=7) [rank0]: text", "", 0),
        (b"(TaskRunner pid=16623) x: 1", "x: 1", "TaskRunner pid=16623", 0),
        (b"(Worker pid=7, ip=10.0.0.1)   indented", "  indented", "Worker pid=7, ip=10.0.0.1", 0),
        (b"(train(0) pid=7) x", "x", "train(0) pid=7", 0),
        (b"(pid=7) x", "x", "pid=7", 0),
        (b"(a, b) f(pid=7) x", "(a, b) f(pid=7) x", "", 0),
        (b"\x1b[36m(main_task pid=1)\x1b[0m \x1b[1mx\x1b[0m", "x", "main_task pid=1", 0),
        (b"\x1b[36m(W pid=2)\x1b[0m [rank7]:W0226 03:57", "W0226 03:57", "W pid=2 rank7", 0),
        (b"[default0]:12:00:00 SUCCESS Step 10 | Time: 40.00s", "Step 10 | Time: 40.00s", "default0", 0),
        (b"[rank2]: Traceback", "Traceback", "rank2", 0),
        (b"16:43:41    INFO Starting orchestrator step 14", "Starting orchestrator step 14", "", 0),
        (b"2026-01-02 03:04:05.678 | INFO     | a.b:main:12 - x | y - z", "x | y - z", "", 0),
        (b"2026-03-17 04:56:37 -0700 | Started: 'step'", "2026-03-17 04:56:37 -0700 | Started: 'step'", "", 0),
        (b"(W pid=2) a 100%\x1b[32m [repeated 7x across cluster]\x1b[0m", "a 100%", "W pid=2", 7),
        (b"x [repeated 3x across cluster] (Ray deduplicates logs by default. Set ...)", "x", "", 3),
        (b"caf\xc3\xa9 \xff", "caf\u00e9 \ufffd", "", 0),
    ],
)
def test_what_is_around_a_line_comes_off(raw: bytes, text: str, origin: str, repeated: int) -> None:
    assert read(raw + b"\n") == ([Line(text, 1, origin, repeated)], [])
    assert read(b"\n" + raw + b"\r\n") == ([Line(text, 2, origin, repeated)], [])


def test_a_carriage_return_ends_a_line_and_the_process_stays_the_same() -> None:
    found, _ = read(b"(W pid=2) \r 10%|#| 1/9\r          \r{'loss': 0.5}\nnext")
    assert [(line.text, line.origin) for line in found] == [
        (" 10%|#| 1/9", "W pid=2"),
        ("          ", "W pid=2"),
        ("{'loss': 0.5}", "W pid=2"),
        ("next", ""),
    ]
    assert [line.number for line in found] == [1, 1, 1, 2]
    assert [line.torn for line in found] == [False, False, False, True]


def test_a_bar_below_another_moves_the_cursor() -> None:
    found, _ = read(b"\r 10%|#| 1/9\n\r 50%|##| 1/2\x1b[A\r          \r\x1b[1A\x1b[0mx A\n")
    assert [line.moved for line in found] == [False, True, False, False]


def test_a_line_of_bars_alone_may_be_of_any_length() -> None:
    bar = b"\r 10%|# | 1/9 [00:01<00:08] " + b"." * 5000
    count = 2 * pieces_of.LONGEST_LINE // len(bar)
    found, warnings = read(bar * count + b"\nx\n")
    assert len(found) == count + 1
    assert found[-1] == Line("x", 2)
    assert warnings == []


def test_what_is_cut_off_a_line_without_end_is_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_of, "LONGEST_LINE", 64)
    found, warnings = read(b"1" * 1000 + b"\nstep:1\n", Slow)
    assert [(line.text, line.number) for line in found if not line.torn] == [("step:1", 2)]
    assert {line for line, _ in warnings} == {1}


@pytest.mark.parametrize("prefix", [b"[rank0]:", b"(W pid=1) ", b"12:00:00 INFO "])
def test_a_line_of_prefixes_alone_is_read_at_once(prefix: bytes) -> None:
    found, _ = read(prefix * 200_000 + b"\n")
    assert len(found[0].text) == len(prefix) * (200_000 - 4)


PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x1b([" + "0123456789"), min_size=1)


@given(st.lists(PLAIN.filter(lambda text: "across cluster" not in text), max_size=8))
@settings(max_examples=50)
def test_text_without_prefix_is_as_it_was(texts: list[str]) -> None:
    found, _ = read("".join(f"{text}\n" for text in texts).encode())
    assert found == [Line(text, number) for number, text in enumerate(texts, 1)]


RUBBISH = st.lists(
    st.sampled_from(
        [b"\r", b"\n", b"(W pid=1", b") ", b"[rank0]:", b"\x1b[3", b"\xe2\x96", b"x", b"[repeated 5x across cluster]"]
    )
    | st.binary(max_size=8),
    max_size=30,
).map(b"".join)


@given(RUBBISH, st.integers(0, 300))
@settings(max_examples=100)
def test_rubbish_never_raises_and_what_is_whole_reads_the_same_when_cut(rubbish: bytes, at: int) -> None:
    whole, _ = read(rubbish)
    for line in whole:
        assert "\r" not in line.text
        assert "\n" not in line.text
    part, _ = read(rubbish[:at])
    ended = [line for line in part if not line.torn]
    assert ended == whole[: len(ended)]
