"""The seal of what is published: the SHA-256 of each of its files, as `sha256sum -c` reads them, written once.

A run has the file `SEAL` in its folder, a page (`kills.md`) the file `kills.md.SEAL` beside it. Everything below
`results/<date>/` is a sealed run, a sealed page, or a correction of one.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import UserError
from harness.report.corrections import FILE_NAME, corrections_of
from harness.report.grades import EVIDENCE, Evidence

SEAL = "SEAL"
HEAD = re.compile(r"# (?P<evidence>.+), published (?P<date>\d{4}-\d\d-\d\d)")
LINE = re.compile(r"(?P<hash>[0-9a-f]{64})  (?P<name>.+)")
DATED = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"


@dataclass(frozen=True)
class Seal:
    """What a seal says: the grade of evidence, the day of publication (UTC), the SHA-256 of each file by its name."""

    evidence: Evidence
    date: str
    files: dict[str, str]


def seal_of(published: Path) -> Path:
    """Where the seal of a run (its folder) or a page (its file) is."""
    return published / SEAL if published.is_dir() else published.with_name(f"{published.name}.{SEAL}")


def write_seal(published: Path, evidence: Evidence, date: str | None = None) -> Path:
    """Seal a run or a page.

    Args:
        date: the day of publication; None for today, in UTC.

    Raises:
        UserError: it is sealed already.
    """
    path = seal_of(published)
    day = date or datetime.now(UTC).date().isoformat()
    folder = published if published.is_dir() else published.parent
    files = sorted(file for file in published.rglob("*") if file.is_file()) if published.is_dir() else [published]
    lines = [f"{_hash(file)}  {file.relative_to(folder).as_posix()}" for file in files]
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write("\n".join([f"# {evidence}, published {day}", *lines]) + "\n")
    except FileExistsError as error:
        raise UserError(f"{published} is published already, and what is published is never changed") from error
    return path


def read_seal(published: Path) -> Seal:
    """The seal of a run or a page.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    path = seal_of(published)
    try:
        first, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{published} has no seal that can be read: {error}") from error
    head, rest = HEAD.fullmatch(first), [LINE.fullmatch(line) for line in lines]
    if head is None or head["evidence"] not in EVIDENCE or not lines or None in rest:
        raise UserError(f"{path} is no seal")
    evidence = next(grade for grade in EVIDENCE if grade == head["evidence"])
    return Seal(evidence, head["date"], {line["name"]: line["hash"] for line in rest if line})


def published_in(results: Path) -> list[Path]:
    """Every sealed run (its folder) and page (its file) below a folder of results, by date and name. What a publication
    that was interrupted left (`.name.partial`) is none."""
    runs = [path.parent for path in results.glob(f"{DATED}/*/[!.]*/{SEAL}")]
    pages = [path.with_name(path.name.removesuffix(f".{SEAL}")) for path in results.glob(f"{DATED}/*/[!.]*.{SEAL}")]
    return sorted(runs + pages)


def broken_seals(results: Path) -> list[str]:
    """One line for everything below `results/<date>/` that is not as it was published; empty where all is.

    A file that changed, went or came, a file without a seal, a correction that cannot be read or is missing.
    """
    lines, known = [], set[Path]()
    for published in published_in(results):
        known |= {seal_of(published), *published.parent.glob(f"{published.name}.correction-*")}
        try:
            corrections_of(published)
        except UserError as error:
            lines.append(str(error))
        try:
            seal = read_seal(published)
        except UserError as error:
            lines.append(str(error))
            known |= {published, *published.rglob("*")}
            continue
        folder = published if published.is_dir() else published.parent
        known |= {folder / name for name in seal.files}
        lines += _changed(folder, seal)
    return lines + list(_strangers(results, known))


def _changed(folder: Path, seal: Seal) -> list[str]:
    changed = []
    for name, sealed in seal.files.items():
        path = folder / name
        if not path.is_file():
            changed.append(f"{path} is missing; it was published on {seal.date}")
        elif _hash(path) != sealed:
            changed.append(
                f"{path} was changed after its publication on {seal.date}; put it back (`git log {path}`) and write "
                "what is wrong with `rlaxes correct`"
            )
    return changed


def _strangers(results: Path, known: set[Path]) -> Iterator[str]:
    for path in sorted(results.glob(f"{DATED}/**/*")):
        if not path.is_file() or path in known:
            continue
        if FILE_NAME.fullmatch(path.name):
            yield f"{path} corrects nothing that is published"
        elif not seal_of(path.parent).exists() and path.suffix != f".{SEAL}":
            yield f"{path} has no seal; publish a run with `rlaxes publish RUN`, a page with `rlaxes publish {path}`"
        else:
            yield f"{path} came after the publication"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
