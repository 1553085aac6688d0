"""`rlaxes ingest`: what frameworks wrote elsewhere, as run folders that `rlaxes report` renders."""

import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.ingest.cells import Cells
from harness.ingest.join import join
from harness.ingest.readers import READERS
from harness.ingest.recognise import recognise
from harness.ingest.run_folder import Written, write_run
from harness.ingest.series import SeriesBook
from harness.ingest.sources import Source, find_sources
from harness.ingest.staged import StagedFile, stage_file

Moved = Callable[[int], None]
Watch = Callable[[Sequence[Source]], Moved]
"""Is told the files before they are read, and gives what to tell of each read how many bytes it was."""
UNREADABLE = (OSError, EOFError, zlib.error)


@dataclass(frozen=True)
class Ingested:
    """The runs that were read, each in its folder."""

    runs: Sequence[Written]

    def as_dict(self) -> dict[str, Any]:
        """For `rlaxes ingest --json`: the object of the run, or where there are several a list of them."""
        told = [_told(run) for run in self.runs]
        return told[0] if len(told) == 1 else {"runs": told}


def ingest(
    paths: Sequence[str], output: Path, watch: Watch, version: str | None = None, warmup_steps: int = 0
) -> Ingested:
    """Read every log that the paths lead to into run folders below `output`.

    Args:
        version: the framework's, where the logs do not tell it.
        warmup_steps: how many training steps the figures of a report leave out at the start.

    Raises:
        UserError: a path is not there, nothing could be read, or `output` cannot be written.
    """
    warnings: list[str] = []
    with find_sources(paths) as sources, tempfile.TemporaryDirectory(prefix="rlaxes-ingest-") as room:
        book = SeriesBook()
        files = list(_staged(sources, book, Path(room), watch(sources), warnings))
        if not files:
            raise UserError(f"nothing to ingest: {'; '.join(warnings) or 'no file there'}")
        with Cells(Path(room)) as cells:
            return Ingested(
                [write_run(run, output, warnings, warmup_steps) for run in join(files, book.all, cells, version)]
            )


def _staged(
    sources: Sequence[Source], book: SeriesBook, room: Path, moved: Moved, warnings: list[str]
) -> list[StagedFile]:
    """Every file that is a log; of the others a warning each."""
    files = []
    for number, source in enumerate(sources):
        try:
            with source.open() as stream:
                match = recognise(stream, source.name, READERS)
            if match is None:
                warnings.append(f"{source.name}: no log that rlaxes reads")
                continue
            files.append(stage_file(source, match, book, room / f"{number}.parquet", moved))
        except UNREADABLE as error:
            warnings.append(f"{source.name}: cannot be read: {error}")
    return files


def _told(run: Written) -> dict[str, Any]:
    manifest = run.manifest
    series = [
        {
            "measure": one.measure if one.same else None,
            "native_key": one.key,
            "unit": one.unit,
            "scope": ", ".join(filter(None, (one.part, one.scope))) or None,
            "n": one.n,
            "first": entry["first"],
            "last": entry["last"],
        }
        for one, entry in zip(run.series, manifest["series"], strict=True)
    ]
    kept = {key: manifest[key] for key in ("framework", "version", "files", "steps")}
    rest = {key: manifest[key] for key in ("unknown_keys", "warnings")}
    return {**kept, "series": series, **rest, "ledger": str(run.folder / "ledger")}
