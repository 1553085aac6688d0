"""Throws mutated logs at every reader until it is stopped: `python benchmarks/fuzz_readers.py CORPUS [OPTIONS]`, with
libFuzzer's options.

Needs atheris (a coverage-guided fuzzer), which no lock of this project holds: install it into an environment of its own
that also sees this checkout and its packages. The corpus begins as the heads of `tests/data`; what libFuzzer adds to it
goes into CORPUS. A crash is an input that a reader answered with an exception, with reading on after the end, or with
two minutes of silence; its file becomes a test in `tests/ingest/test_fuzz.py`.
"""

import io
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["harness.ingest"]):
    from harness.ingest.readers import READERS
    from harness.ingest.reading import HEAD_BYTES

HEAD = 3 * 1024
LONGEST = 8 * 1024


class Counted(io.BytesIO):
    """A stream that says no to whoever reads it without end."""

    calls = 0

    def read(self, size: int | None = -1) -> bytes:
        """As a file does, a bounded number of times."""
        self.calls += 1
        if self.calls > 64 + len(self.getbuffer()):
            raise AssertionError("reads on after the end")
        return super().read(size)


def one(data: bytes) -> None:
    """Every reader, whether or not the file is its own."""
    for reader in READERS:
        reader.recognises(data[:HEAD_BYTES], "run.log")
        for _ in reader.blocks(Counted(data), quiet):
            pass


def quiet(*_: object) -> None:
    """Hears every warning, and is not moved."""


def seeds(folder: Path) -> None:
    """The heads and the tails of all files of `tests/data`, as files of the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(sorted(Path("tests/data").rglob("*"))):
        if path.is_file():
            content = path.read_bytes()
            (folder / f"seed{number}").write_bytes(content[:HEAD])
            (folder / f"seed{number}-end").write_bytes(content[-HEAD:])


if __name__ == "__main__":
    seeds(Path(sys.argv[1]))
    one(b"")  # what readers import when they are first used is no silence
    atheris.Setup([*sys.argv, f"-max_len={LONGEST}", "-timeout=120", "-rss_limit_mb=2048"], one)
    atheris.Fuzz()
