"""Corrections of what is published: each a dated file beside the table, numbered, never changed and never taken back.

`results/<date>/<profile>/<run>.correction-1.yaml` corrects the run; `kills.md.correction-1.yaml` corrects the page.
"""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from harness.compare.rows import Row
from harness.errors import UserError
from harness.report.model import ReportModel

FILE_NAME = re.compile(r"(?P<of>.+)\.correction-(?P<number>[1-9]\d*)\.yaml")
MOST_PARTS = 4


@dataclass(frozen=True)
class Correction:
    """What is wrong in something that was published.

    Attributes:
        of: the name of the run or of the page that it corrects.
        number: from 1, without gaps.
        date: YYYY-MM-DD, in UTC, of the day on which it was written.
        what: what holds instead, or what does not hold.
        why: how it came about and how it was found.
        by: who says so, in their own word; None where nobody signed.
        withdrawn: what it names is taken back, and no reader may rest on it. Otherwise the figures stand.
        rows: what of the run it speaks of, each as `adapter/layout/track/measure`, where `*` stands for any text, and
            what is left out at the end for anything (`trl`, `*/disaggregated_*/*/reward`). Empty: all of it.
    """

    of: str
    number: int
    date: str
    what: str
    why: str
    by: str | None
    withdrawn: bool
    rows: tuple[str, ...]

    def touches(self, row: Row) -> bool:
        """Whether it speaks of that row."""
        return not self.rows or any(_fits(pattern, row) for pattern in self.rows)

    def line(self) -> str:
        """It in one line."""
        verb = "withdrawn" if self.withdrawn else "corrected"
        about = f" ({', '.join(self.rows)})" if self.rows else ""
        signed = f" ({self.by})" if self.by else ""
        return f"{self.date}, {verb}{about}: {self.what.rstrip('.')}. Why: {self.why.rstrip('.')}.{signed}"


def _fits(pattern: str, row: Row) -> bool:
    place = ((row.adapter,), (row.layout,), (row.track,), (row.measure, row.name))
    parts = [re.compile(re.escape(part).replace(r"\*", ".*")) for part in pattern.split("/")]
    return all(any(map(part.fullmatch, names)) for part, names in zip(parts, place, strict=False))


def corrections_of(published: Path) -> list[Correction]:
    """The corrections of a published run (its folder) or page (its file), in the order of their numbers.

    Raises:
        UserError: a correction cannot be read, lacks something, or a number before it is missing.
    """
    found = {}
    for path in published.parent.glob(f"{published.name}.correction-*"):
        name = FILE_NAME.fullmatch(path.name)
        if name is None or name["of"] != published.name:
            raise UserError(f"{path}: a correction is called {published.name}.correction-1.yaml, -2 and so on")
        found[int(name["number"])] = _read(path, published.name, int(name["number"]))
    if missing := set(range(1, len(found) + 1)) - found.keys():
        raise UserError(f"{published}: its correction {min(missing)} is missing; a correction is never taken back")
    return [found[number] for number in sorted(found)]


def _read(path: Path, of: str, number: int) -> Correction:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(content["rows"], list) or not isinstance(content["withdrawn"], bool):
            raise TypeError("rows has to be a list, and withdrawn true or false")
        correction = Correction(**content | {"rows": tuple(content["rows"]), "date": str(content["date"])})
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no correction: {' '.join(str(error).split())}") from error
    if (correction.of, correction.number) != (of, number):
        raise UserError(f"{path} says that it is correction {correction.number} of {correction.of}")
    _check_words(correction)
    return correction


def _check_words(correction: Correction) -> None:
    for word in ("what", "why"):
        if not str(getattr(correction, word) or "").strip():
            raise UserError(f"a correction has to say {word}: --{word} '...'")


def is_withdrawn(row: Row, corrections: Iterable[Correction]) -> bool:
    """Whether one of them takes the row back."""
    return any(correction.withdrawn and correction.touches(row) for correction in corrections)


def withdrawn_whole(corrections: Iterable[Correction]) -> bool:
    """Whether one of them takes all of it back."""
    return any(correction.withdrawn and not correction.rows for correction in corrections)


def write_correction(
    published: Path,
    *,
    what: str,
    why: str,
    by: str | None = None,
    rows: tuple[str, ...] = (),
    withdrawn: bool = False,
    report: ReportModel | None = None,
) -> Path:
    """Put the next correction beside a published run or page, with today's date.

    Args:
        report: the published report; None for a page, which has no rows.

    Raises:
        UserError: `what` or `why` is empty, or a pattern fits no row.
    """
    number = len(corrections_of(published)) + 1
    today = datetime.now(UTC).date().isoformat()
    said, because = " ".join(what.split()), " ".join(why.split())
    correction = Correction(published.name, number, today, said, because, by, withdrawn, rows)
    _check_words(correction)
    for pattern in rows:
        _check_pattern(pattern, published, report)
    path = published.with_name(f"{published.name}.correction-{number}.yaml")
    content: dict[str, Any] = asdict(correction) | {"rows": list(rows)}
    with path.open("x", encoding="utf-8") as file:
        yaml.safe_dump(content, file, sort_keys=False, allow_unicode=True, width=120)
    return path


def _check_pattern(pattern: str, published: Path, report: ReportModel | None) -> None:
    if report is None:
        raise UserError(f"{published} is a page and has no rows; leave --rows out and name the line in --what")
    if pattern.count("/") >= MOST_PARTS:
        raise UserError(f"--rows {pattern}: write adapter/layout/track/measure, with * for any")
    if not any(_fits(pattern, row) for row in report.rows):
        raise UserError(f"--rows {pattern} fits no row of {published.name}; write adapter/layout/track/measure")
