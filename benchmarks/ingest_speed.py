"""How fast `rlaxes ingest` reads verl's console log, beside the reader that people write, and how much memory it takes.

The log is the lines of a real one again and again, each under a step number of its own. Times are of the processor, in
this process or in the command's, so that what else runs on the machine does not count.
"""

import io
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.ingest.readers.verl_console import VerlConsole

REAL = Path(__file__).resolve().parents[1] / "tests/data/real_logs/verl/verl_ppo_gsm8k_notebook_2025-01.log"
READ_BYTES, INGESTED_BYTES = 32_000_000, 1_000_000_000
WANTED_RATE, WANTED_RATIO, WANTED_PEAK = 50e6, 5.0, 300e6
COMMAND = "from harness.cli import main; main()"
STEP_LINE = re.compile(r"step:(\d+) - (.*)")
ITEM = re.compile(r"([\w/@.\-]+):\s*(-?\d+\.?\d*(?:[eE][-+]?\d+)?)")


def log_lines(size: int) -> Iterator[bytes]:
    """About `size` bytes of lines with steps 1, 2, 3, ..."""
    rests = re.findall(rb"step:\d+( - .*)", REAL.read_bytes())
    written, step = 0, 0
    while written < size:
        line = b"\x1b[36m(main_task pid=1234)\x1b[0m step:%d%s\n" % (step := step + 1, rests[step % len(rests)])
        written += len(line)
        yield line


def by_items(text: str) -> list[dict[str, float]]:
    """One way that people write it: a regular expression at every line, another for all items of one that is a
    step's."""
    rows = []
    for line in text.splitlines():
        if found := STEP_LINE.search(line):
            rows.append({key: float(value) for key, value in ITEM.findall(found[2])} | {"step": float(found[1])})
    return rows


def by_keys(text: str) -> list[dict[str, float]]:
    """The other: a regular expression for each key that is wanted, here all that there are."""
    wanted = {key for key, _ in ITEM.findall(text[:100_000])}
    patterns = {key: re.compile(rf"{re.escape(key)}:(-?\d+\.?\d*(?:[eE][-+]?\d+)?)") for key in wanted}
    rows = []
    for line in text.splitlines():
        if found := STEP_LINE.search(line):
            row = {"step": float(found[1])}
            row |= {key: float(item[1]) for key, pattern in patterns.items() if (item := pattern.search(line))}
            rows.append(row)
    return rows


def seconds_of(work: Callable[[], object]) -> float:
    """Processor seconds of the fastest of three."""
    found = []
    for _ in range(3):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def read_blocks(data: bytes) -> int:
    """Read a log with the reader of rlaxes; how many blocks it has."""
    return sum(1 for _ in VerlConsole().blocks(io.BytesIO(data), lambda _line, _words: None))


def ingest_command(log: Path, output: Path) -> tuple[float, float]:
    """Processor seconds and peak resident bytes of the whole command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", COMMAND, "ingest", str(log), "--output", str(output)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, after.ru_maxrss * 1024.0


def main() -> None:
    """Print rates, the ratio, and the peak of 1 GB."""
    data = b"".join(log_lines(READ_BYTES))
    ours = seconds_of(lambda: read_blocks(data))
    print(f"reading: {len(data) / ours / 1e6:.0f} MB/s (wanted: {WANTED_RATE / 1e6:.0f})")
    for reader in (by_items, by_keys):
        theirs = seconds_of(lambda read=reader: read(data.decode()))  # type: ignore[misc]
        print(f"a plain reader {reader.__name__}: {len(data) / theirs / 1e6:.1f} MB/s, ours {theirs / ours:.1f} times")
    print(f"(wanted: {WANTED_RATIO:g} times)")
    with tempfile.TemporaryDirectory(prefix="rlaxes-bench-") as folder:
        log = Path(folder, "verl.log")
        with log.open("wb") as file:
            file.writelines(log_lines(INGESTED_BYTES))
        spent, peak = ingest_command(log, Path(folder, "runs"))
        size = log.stat().st_size
    print(f"the whole command: {size / 1e6:.0f} MB in {spent:.1f} s of one core, {size / spent / 1e6:.0f} MB/s")
    print(f"its peak memory: {peak / 1e6:.0f} MB (wanted: {WANTED_PEAK / 1e6:.0f})")
