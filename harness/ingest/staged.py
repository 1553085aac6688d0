"""One file read to its end: whose it is, what it holds, and its numbers set aside on disk."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.ingest.attempts import Attempt
from harness.ingest.reading import Block, Recognised
from harness.ingest.recognise import Match
from harness.ingest.series import SeriesBook
from harness.ingest.sources import Source
from harness.ingest.stage import Stage
from harness.ingest.watched import Watched

MOST_WARNINGS = 40
"""Of one file; what is beyond is counted."""
MOST_SETTINGS = 2_000


@dataclass
class StagedFile:
    """A file of a foreign log.

    Attributes:
        cells: the table of its numbers, see `harness.ingest.stage.CELLS`.
        blocks: how many blocks it has, with or without numbers.
        settings: what blocks of kind `config` say, and the words of others.
        series: the numbers of the series that it has.
        attempts: those of each scope, in their order.
    """

    name: str
    found: Recognised
    cells: Path
    sha256: str = ""
    bytes: int = 0
    blocks: int = 0
    values: int = 0
    series: set[int] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def shape(self) -> str:
        """What kind of file it is."""
        return self.found.shape

    @property
    def steps(self) -> tuple[int, int] | None:
        """The lowest and the highest training step; None where it names none."""
        found = [attempt for every in self.attempts.values() for attempt in every]
        firsts = [one.first_step for one in found if one.first_step is not None]
        lasts = [one.last_step for one in found if one.last_step is not None]
        return (min(firsts), max(lasts)) if firsts else None


def stage_file(source: Source, match: Match, book: SeriesBook, cells: Path, moved: Callable[[int], None]) -> StagedFile:
    """Read a file to its end.

    Args:
        cells: where to put the table of its numbers.
        moved: is told how many bytes were read each time.

    Raises:
        OSError, EOFError, zlib.error: the file ends to be readable.
    """
    file = StagedFile(source.name, match.found, cells)
    told = 0

    def warn(line: int, words: str) -> None:
        nonlocal told
        told += 1
        if told <= MOST_WARNINGS:
            file.warnings.append(f"{source.name}:{line}: {words}" if line else f"{source.name}: {words}")

    with source.open() as stream, Stage(cells, book) as stage:
        watched = Watched(stream, moved)
        for block in match.reader.blocks(io.BufferedReader(watched, 1 << 20), warn):
            file.blocks += 1
            _settings(block, file.settings)
            if block.kind != "config" and block.values:
                stage.add(block)
        file.sha256, file.bytes = watched.drained(), watched.bytes
    file.attempts, file.values, file.series = stage.attempts.by_scope, stage.values, stage.series
    if told > MOST_WARNINGS:
        file.warnings.append(f"{source.name}: and {told - MOST_WARNINGS} more warnings of this kind")
    if stage.left_out:
        file.warnings.append(f"{source.name}: {stage.left_out} blocks left out: a step or keys without end are no log")
    return file


def _settings(block: Block, settings: dict[str, str]) -> None:
    """Of a setting that is said twice, the first holds."""
    said = dict(block.words)
    if block.kind == "config":
        said = {key: f"{value:.15g}" for key, value in block.values.items()} | said
    for key, value in said.items():
        if len(settings) < MOST_SETTINGS:
            settings.setdefault(key, value)
