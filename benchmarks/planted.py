"""Whether `rlaxes track` finds what was planted, and nothing else: `python -m benchmarks.planted`, by hand.

Each case is a commit in a temporary clone of this repository, measured against the commit before it with the reference
loop, on this machine, which should do nothing else meanwhile:

- slow: the forward and backward pass busy-waits for 5 % of its own time. Wanted: exit 1, and the stage by name.
- docs: only a page of docs/ changes. Wanted: exit 0, without a measurement.
- same: the code changes and does the same. Wanted: exit 0, measured.
- load: the same commit, while another process burns a core at random; the A/A test, which would stop it at once, takes
  any noise. Wanted: exit 2.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TRACK = "from harness.cli import main; main()"
TRAINER = "adapters/reference/trainer.py"
STAGE = "forward_backward"
SHARE = 0.05
BEGIN = f'        with self._span("{STAGE}", trace_id, step) as span:\n'
END = "        norm, applied = None, False\n"
WAIT = f"""\
            planted = time.perf_counter_ns()
            while time.perf_counter_ns() < planted + {SHARE} * (planted - begun):
                pass
"""
BURN = """
import random, time
while True:
    end = time.perf_counter() + random.uniform(0.5, 4.0)
    while time.perf_counter() < end:
        pass
    time.sleep(random.uniform(0.5, 4.0))
"""
SETTINGS = ("task.steps=30", "task.warmup_steps=5", "profile.threads=1")
"""What the cases run with where the words do not say, beside their own. Two threads on two cores made 2 of 16 runs a
fifth slower from their first step to their last; one thread is as fast on this model, and left no such run in 16."""


@dataclass(frozen=True)
class Case:
    """What is planted into which file, beside what, and the exit code that it should end with."""

    name: str
    file: str
    replaced: tuple[tuple[str, str], ...]
    wanted: int
    words: tuple[str, ...] = ("repeats=15",)
    loaded: bool = False

    def settings(self, given: Sequence[str]) -> list[str]:
        """As on the command line of rlaxes."""
        keys = {word.partition("=")[0] for word in given}
        own = [word for word in (*self.words, *SETTINGS) if word.partition("=")[0] not in keys]
        return [*own, *given]


_HARMLESS = (("norm, applied = None, False", "applied, norm = False, None"),)
CASES = (
    Case(
        "slow",
        TRAINER,
        ((BEGIN, f"{BEGIN}            begun = time.perf_counter_ns()\n"), (END, WAIT + END)),
        1,
        ("repeats=30",),
    ),
    Case("docs", "docs/environments.md", (("# Where do the frameworks live?", "# Where frameworks live"),), 0),
    Case("same", TRAINER, _HARMLESS, 0),
    Case("load", TRAINER, _HARMLESS, 2, ("repeats=5", "null_test.max_noise=10"), loaded=True),
)


def clone(folder: Path) -> Path:
    """This repository as it was committed last, to plant commits into."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder)], check=True)
    return folder


def plant(repository: Path, case: Case) -> None:
    """Commit a case on top of the clone's first commit.

    Raises:
        ValueError: the file no longer has the place.
    """
    _git(repository, "reset", "--quiet", "--hard", "origin/HEAD")
    path = repository / case.file
    text = path.read_text(encoding="utf-8")
    for old, new in case.replaced:
        if text.count(old) != 1:
            raise ValueError(f"{case.file} has {text.count(old)} times: {old.strip()}")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    _git(repository, "-c", "user.name=planted", "-c", "user.email=planted@invalid", "commit", "-qam", case.name)


def _git(repository: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(repository), *words], check=True)


def track(repository: Path, settings: Sequence[str], output: Path) -> tuple[int, dict[str, Any]]:
    """Run `rlaxes track` of the clone on its last two commits; the exit code, and what it printed."""
    words = ["track", "adapter=reference", "--pin", "HEAD~1", "--candidate", "HEAD", "--json", f"output={output}"]
    command = [sys.executable, "-c", TRACK, *words, *settings]
    done = subprocess.run(command, cwd=repository, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, json.loads(done.stdout or "{}")


@contextlib.contextmanager
def random_load() -> Iterator[None]:
    """A process that burns a core for seconds at random, and rests as long."""
    with subprocess.Popen([sys.executable, "-c", BURN]) as burner:
        try:
            yield
        finally:
            burner.kill()


def main() -> None:
    """Run the cases that were named, and say which ended as wanted; exits with 1 where one did not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="of slow, docs, same, load; none: all")
    parser.add_argument("--output", type=Path, default=Path("runs"), help="the folder for run folders")
    parser.add_argument("--settings", nargs="*", default=(), help="as on the command line of rlaxes")
    asked = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        repository = clone(Path(name) / "rlaxes")
        for case in CASES:
            if asked.cases and case.name not in asked.cases:
                continue
            plant(repository, case)
            started = time.monotonic()
            with random_load() if case.loaded else contextlib.nullcontext():
                code, told = track(repository, case.settings(asked.settings), asked.output.resolve())
            _show(case, code, told, time.monotonic() - started)
            if code != case.wanted:
                wrong.append(case.name)
    if wrong:
        sys.exit(f"not as wanted: {', '.join(wrong)}")


def _show(case: Case, code: int, told: dict[str, Any], seconds: float) -> None:
    verdict = "as wanted" if code == case.wanted else f"WANTED {case.wanted}"
    print(f"{case.name}: exit {code} ({verdict}) after {seconds:.0f} s")
    for line in (told.get("note"), told.get("error"), told.get("explained_by")):
        if line:
            print(f"  {line}")
    for found in told.get("judgements", ()):
        effect = "" if found["effect"] is None else f" {found['effect'] - 1:+.2%}"
        where = f"{found['measure']}[{found['variant']}]" if found["variant"] else found["measure"]
        print(f"  {where}: {found['state']}{effect} ({found['reason']})")


if __name__ == "__main__":
    main()
