"""Where a run was resumed or began anew, over all its files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.ingest.attempts import Attempt
from harness.ingest.group import Group

MOST_SEAMS = 100


@dataclass(frozen=True)
class Start:
    """An attempt of a run, where its first line stands. `number` counts from 0 in its scope, over all files."""

    number: int
    file: str
    attempt: Attempt
    highest: int | None

    @property
    def first(self) -> int | None:
        """Its first step."""
        return self.attempt.first_step


def starts_of(group: Group) -> list[Start]:
    """Every attempt of every scope once, in their order; `highest` is the highest step before it."""
    found: dict[tuple[str, int], Start] = {}
    for file in group.files:
        for scope, attempts in file.attempts.items():
            for number, attempt in enumerate(attempts, group.base[file.name]):
                before = [one.attempt.last_step for (s, n), one in found.items() if s == scope and n < number]
                highest = max((step for step in before if step is not None), default=None)
                found.setdefault((scope, number), Start(number, file.name, attempt, highest))
    return list(found.values())


def seams_of(starts: list[Start], again: Mapping[int, int]) -> Iterator[dict[str, object]]:
    """What to say of each start but the first of its scope.

    Args:
        again: how many steps of an earlier attempt each one wrote again, by its number.
    """
    for start in [start for start in starts if start.number][:MOST_SEAMS]:
        at = start.attempt
        where = f"{start.file}:{at.line}" + (f", {at.scope}" if at.scope else "")
        repeated = again.get(start.number, 0)
        said = f"{where}: goes on at step {at.first_step} after step {start.highest}; "
        said += f"{repeated} steps written again, the last writing counts, the earlier is kept aside"
        yield {
            "file": start.file,
            "line": at.line,
            "scope": at.scope,
            "step": at.first_step,
            "after": start.highest,
            "repeated_steps": repeated,
            "said": said,
        }
