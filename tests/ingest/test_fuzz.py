"""Every reader at rubbish, and at every real log cut, flipped, spliced and torn: it does not raise, reads each byte
once, and gives no number that the file does not hold. What `benchmarks/fuzz_readers.py` found stands at the end."""

import io
import math
import re
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.lines import ANSI
from harness.ingest.readers import READERS
from harness.ingest.readers.skyrl_console import SkyRlConsole
from harness.ingest.reading import HEAD_BYTES, Block, Reader
from harness.ingest.recognise import recognise
from tests import DATA

FILES = sorted(path for folder in ("real_logs", "formats") for path in (DATA / folder).rglob("*") if path.is_file())
LOGS = [path for path in FILES if path.is_relative_to(DATA / "real_logs")]
WINDOW = 4096
COUNTING = ("TensorBoard events", "W&B run", "rollout dump", "completions")
"""Shapes whose numbers are no text in the file, or are counted from it; their own tests hold them to their content."""
ADDED: dict[type, tuple[str, ...]] = {SkyRlConsole: ("timing/",)}
"""Keys whose numbers a reader adds up: a stage that came twice in a step took as long as both."""
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d*)?")


class Counted(io.BytesIO):
    """A file that ends, and says so once or a few times, not for ever."""

    given = after_end = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.given += len(data)
        self.after_end += not data
        assert self.given <= len(self.getbuffer()), "a byte was read twice"
        assert self.after_end < 100, "reads on after the end"
        return data


def blocks_of(reader: Reader, data: bytes, name: str = "run.log") -> list[Block]:
    reader.recognises(data[:HEAD_BYTES], name)
    blocks = list(reader.blocks(Counted(data), lambda line, words: None))
    for block in blocks:
        assert block.step is None or type(block.step) is int
        assert block.line >= 0
        assert all(type(key) is str and type(value) is float for key, value in block.values.items())
    return blocks


def numbers_in(data: bytes) -> set[float]:
    """All that a reader may take for a number: as it stands, or with colours, line ends and thousands' commas out."""
    text = re.sub(ANSI, b"", data).decode("utf-8", "replace")
    found: set[float] = set()
    for version in (data.decode("utf-8", "replace"), text, re.sub(r"[\r\n]+", "", text)):
        found |= {float(number) for number in NUMBER.findall(version)}
        found |= {float(number.replace(",", "")) for number in GROUPED.findall(version)}
    lower = text.lower()
    found |= {number for word, number in (("true", 1.0), ("false", 0.0), ("none", 0.0)) if word in lower}
    found |= {number for number in (math.inf, -math.inf) if "inf" in lower}
    return found | {-number for number in found}


def check(data: bytes, name: str = "run.log") -> None:
    known = numbers_in(data)
    for reader in READERS:
        added = ADDED.get(type(reader), ())
        for block in blocks_of(reader, data, name):
            if reader.shape not in COUNTING:
                said = {key: number for key, number in block.values.items() if not key.startswith(added)}
                made = {key: number for key, number in said.items() if number not in known and not math.isnan(number)}
                assert made == {}, type(reader).__name__


@cache
def content(path: Path) -> bytes:
    return path.read_bytes()


def broken(seed: int) -> bytes:
    """A window of a real file, or of two, with a few things wrong with it. Of a seed, since Hypothesis would draw
    windows and changes that are next to nothing."""
    random = Random(seed)
    data = bytearray()
    for _ in range(random.choice((1, 1, 1, 2))):
        whole = content(random.choice(FILES))
        start = random.choice((0, random.randrange(len(whole))))
        data += whole[start : start + random.randrange(WINDOW)]
    for _ in range(random.randrange(5)):
        at = random.randrange(len(data) + 1)
        end = at + random.randrange(60)
        change = random.choice(("cut", "drop", "again", "put", "put", "flip"))
        if change == "cut":
            del data[at:]
        elif change == "drop":
            del data[at:end]
        elif change == "again":
            data[at:at] = data[at:end] * random.randrange(1, 4)
        elif change == "put":
            data[at:at] = random.choice(PUT)
        else:
            data[at : at + 1] = random.randbytes(1)
    return bytes(data)


PUT = [
    b"\n",
    b"\r",
    b"\x1b[36m",
    b"\0",
    b"nan",
    b"-inf",
    b"1e999",
    b"9" * 400,
    b"{",
    b"}",
    b"[" * 50,
    b"'",
    b'"',
    b"\\",
]
PUT += [
    b"step:1 - ",
    b"Step 1 | ",
    b"{'loss': ",
    b"(Worker pid=1) ",
    b" [repeated 5x across cluster]",
    b"\xf0\x9f",
    b"\xe2\x94",
]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_a_broken_log(seed: int) -> None:
    check(broken(seed))


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=600) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
def test_rubbish(data: bytes) -> None:
    check(data)
    recognise(io.BytesIO(data), "run.log", READERS)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_real_log_is_its_framework_s(path: Path) -> None:
    match = recognise(io.BytesIO(content(path)), path.name, READERS)
    assert match is None or match.found.framework == path.parent.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_cut_anywhere_the_part_before_reads_the_same(path: Path) -> None:
    whole = content(path)
    match = recognise(io.BytesIO(whole), path.name, READERS)
    if match is None:
        return
    complete = [repr(block) for block in blocks_of(match.reader, whole, path.name)]
    for share in (0.13, 0.5, 0.71, 0.997):
        cut = [repr(block) for block in blocks_of(match.reader, whole[: int(len(whole) * share)], path.name)]
        assert cut[:-2] == complete[: len(cut[:-2])]


@pytest.mark.parametrize(
    "line", [b"x" * 5_000_000, b"1" * 2_000_000, b"step:1 - " * 300_000, b"{" * 2_000_000, b"\r" * 999_999]
)
def test_a_line_without_end(line: bytes) -> None:
    for reader in READERS:
        blocks_of(reader, line)


FOUND = [
    b"step:1 - glo=bal/min:4127.0 - timing_s/step:28.9 - timing_s/gen:2.0\n",  # looked at for ever by verl's console
]


@pytest.mark.parametrize("data", FOUND)
def test_what_was_found(data: bytes) -> None:
    check(data)
