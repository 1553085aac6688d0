"""`rlaxes audit`: which numbers of logs and published tables cannot be, or exclude each other."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.audit.quantities import QUANTITIES, Case
from harness.audit.readings import readings
from harness.audit.rule import Finding, findings
from harness.audit.rules import RULES
from harness.audit.tables import read_table
from harness.errors import UserError
from harness.ingest.cases import Place, cases_of
from harness.ingest.keymap import key_map
from harness.ingest.readers import READERS
from harness.ingest.recognise import Match, recognise
from harness.ingest.sources import Source, find_sources

MARKDOWN = ".md"
TABLES = (".json", ".jsonl", ".csv", MARKDOWN)


@dataclass
class Examined:
    """What was found: the findings in the order of files and lines, the cases that were asked, what each table row adds
    up to, and a sentence for each file or line that could not be used."""

    findings: list[Finding] = field(default_factory=list)
    cases: int = 0
    readings: dict[str, dict[str, float]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, name: str, what: str, cases: Iterable[Case]) -> None:
        """Ask every rule about the cases of one file or run."""
        self.files[name] = what
        for case in cases:
            self.cases += 1
            self.findings += findings(case, RULES)

    def as_dict(self) -> dict[str, object]:
        """For `rlaxes audit --json`."""
        found = [finding.as_dict() for finding in self.findings]
        rest = {"cases": self.cases, "files": self.files, "readings": self.readings, "warnings": self.warnings}
        return {"findings": found, **rest}


def examine(paths: Sequence[str], given: Mapping[str, float] | None = None) -> Examined:
    """Ask every rule about every step of every log, and every row of every table, that the paths lead to.

    Args:
        given: quantities that hold for all of it and stand nowhere in it, as `memory_card` or `devices_declared`.

    Raises:
        UserError: a path is not there; nothing at all could be read; `given` names no quantity.
    """
    if unknown := set(given or {}) - QUANTITIES.keys():
        raise UserError(f"no quantity {', '.join(sorted(unknown))}; there are {', '.join(QUANTITIES)}")
    done = Examined()
    with find_sources(paths) as sources:
        for source in sources:
            try:
                _examine_one(source, given or {}, done)
            except (OSError, EOFError, zlib.error) as error:
                done.warnings.append(f"{source.name}: cannot be read: {error}")
    if not done.files:
        detail = "; ".join(done.warnings) or "no file there"
        raise UserError(f"nothing to audit: {detail}")
    return done


def _examine_one(source: Source, given: Mapping[str, float], done: Examined) -> None:
    path = Path(source.name)
    # A page that quotes a log beside its tables is a page.
    if path.suffix == MARKDOWN and _examine_table(path, done) is None:
        return
    with source.open() as stream:
        match = recognise(stream, source.name, READERS)
    if match is not None:
        what = f"{match.found.framework} {match.found.shape}"
        done.add(source.name, what, _of_log(source, match, given, done))
        return
    if path.suffix not in TABLES or not path.exists():
        done.warnings.append(f"{source.name}: no log or table that the audit reads")
    elif complaint := _examine_table(path, done):
        done.warnings.append(complaint)


def _examine_table(path: Path, done: Examined) -> str | None:
    """Why it is none, or None where it was one."""
    if not path.exists():
        return f"{path}: is in an archive"
    try:
        cases = read_table(path)
    except UserError as error:
        return str(error)
    names = Counter(case.name for case in cases)
    for case in cases:
        if numbers := readings(case):
            line = case.observations[0].where.line
            done.readings[case.name if names[case.name] == 1 else f"{case.name}, line {line}"] = numbers
    done.add(str(path), "table", cases)
    return None


def _of_log(source: Source, match: Match, given: Mapping[str, float], done: Examined) -> Iterator[Case]:
    def warn(line: int, words: str) -> None:
        done.warnings.append(f"{source.name}:{line}: {words}")

    place = Place(source.name, key_map(match.found.framework), match.found.version, given)
    with source.open() as stream:
        yield from cases_of(match.reader.blocks(stream, warn), place)
