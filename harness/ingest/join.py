"""Runs from files: each number once, the last attempt's where several wrote a step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from harness.ingest.cells import Cells
from harness.ingest.group import Group, framework_of_file, group_files
from harness.ingest.keymap import KeyMap, KeyMeaning, key_map
from harness.ingest.merge import REPLACED, ROLES, grown, merged
from harness.ingest.reading import UNKNOWN
from harness.ingest.seams import seams_of, starts_of
from harness.ingest.series import Series
from harness.ingest.staged import StagedFile

ROWS = pa.schema([("step", pa.int64()), ("series", pa.int32()), ("value", pa.float64())])


@dataclass(frozen=True)
class Stored:
    """A series as a ledger holds it; `role` is one of `harness.ingest.merge.ROLES`."""

    series: Series
    role: str = ""

    @property
    def scope(self) -> str:
        """What tells it from another series of the same key, in words; empty where nothing does."""
        kind = "" if self.series.kind == "training" else self.series.kind
        return ", ".join(filter(None, (self.series.scope, kind, self.role)))

    @property
    def trained(self) -> bool:
        """Whether it speaks of training steps, as written, in the attempt that counts."""
        return self.series.kind == "training" and not self.role

    @property
    def name(self) -> str:
        """Its key in the ledger: the native key, after what tells it from another."""
        return f"{self.scope}: {self.series.key}" if self.scope else self.series.key


class JoinedRun:
    """One run, from one file or several, whose numbers stay on disk.

    Attributes:
        stored: every series in every role; the run need not have them all.
        seams: where it was resumed or began anew, with how many steps were written again.
    """

    def __init__(self, group: Group, series: Sequence[Series], cells: Cells, version: str | None) -> None:
        self.files, self._series, self._cells = group.files, series, cells
        self._told_twice = group.told_twice
        names = (framework_of_file(file, series) for file in group.files)
        self.framework = next((name for name in names if name != UNKNOWN), UNKNOWN)
        self.version = version or next((f.found.version for f in group.files if f.found.version), None)
        self._keys = self._key_map()
        self.stored = [Stored(one, role) for role in ROLES for one in series]
        starts = starts_of(group)
        self._query = merged(group, starts, cells)
        self.seams = list(seams_of(starts, self._again())) if any(start.number for start in starts) else []
        self.warnings = [warning for file in self.files for warning in file.warnings]
        self.warnings += [f"read as one run: {why}" for why in group.joined]

    @property
    def settings(self) -> dict[str, str]:
        """What its files say of how it was set; of a setting that differs, the first."""
        return {key: value for file in reversed(self.files) for key, value in file.settings.items()}

    @property
    def steps(self) -> int | None:
        """How many training steps it has numbers of; None where it numbers none."""
        trained = [number for number, one in enumerate(self._series) if one.kind == "training"]
        query = f"select count(distinct step) from ({self._query}) where list_contains({trained}, series)"
        ((count,),) = self._cells.rows(query)
        return int(count) or None

    def meaning(self, key: str) -> KeyMeaning | None:
        """What a key means in this run, by its version where that is known, and by its mode where it tells one."""
        return self._keys.meaning(key, self.version, self.settings.get("mode"))

    def files_of(self, stored: int) -> list[str]:
        """The names of the files that its numbers of a series come from, by the number in `stored`."""
        number = stored % len(self._series)
        return [file.name for file in self.files if number in file.series - self._told_twice.get(file.name, set())]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its numbers, by step: step, number in `stored`, value."""
        yield from self._numbered(f"select step, series, value, role from ({self._query})")
        if counters := self._counters():
            yield from self._numbered(grown(self._query, counters))

    def _key_map(self) -> KeyMap:
        whole = key_map(self.framework)
        return whole if self.version else whole.narrowed(self._series[number].key for number in self._numbers)

    @property
    def _numbers(self) -> list[int]:
        """The numbers of the series that it has."""
        return sorted(set().union(*(file.series for file in self.files)))

    def _numbered(self, query: str) -> Iterator[pa.RecordBatch]:
        size = len(self._series)
        numbered = f"select step, (series + {size} * role)::int as series, value from ({query})"
        return self._cells.batches(numbered, ROWS)

    def _counters(self) -> list[int]:
        """The numbers of the training series that run on from step to step."""
        trained = [number for number in self._numbers if self._series[number].kind == "training"]
        meanings = [(number, self.meaning(self._series[number].key)) for number in trained]
        return [number for number, meaning in meanings if meaning is not None and meaning.of == "cumulative"]

    def _again(self) -> dict[int, int]:
        query = f"select winner, count(distinct step) from ({self._query}) where role = {REPLACED} group by winner"
        return {int(winner): int(steps) for winner, steps in self._cells.rows(query)}


def join(files: Sequence[StagedFile], series: Sequence[Series], cells: Cells, version: str | None) -> list[JoinedRun]:
    """The runs that the files are of, in the order of their first files.

    Args:
        version: the framework's, where the logs do not tell it.
    """
    return [JoinedRun(group, series, cells, version) for group in group_files(files, series, cells)]
