"""A foreign run as a run folder: a manifest that says where all of it came from, and a sealed ledger.

The ledger's table `native` holds the numbers as the framework wrote them, under the native key; where a number is of a
part of the run, of validation, or was replaced by a later attempt, that stands before the key (`Stored.name`). The
manifest's `series` say of each what it is (`harness.contract.NativeSeries`).
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.contract import WRITTEN, NativeSeries, write_sealed
from harness.contract.seal import write_json
from harness.errors import UserError
from harness.execute.provenance import rlaxes_version
from harness.execute.run_folder import MANIFEST
from harness.ingest.cases import UNIT_SCALES
from harness.ingest.join import JoinedRun, Stored
from harness.ingest.tally import Tally

PROCESS = CELL = "ingested"
CELL_ID = f"{CELL}.r0"
NATIVE = WRITTEN["native"]


@dataclass(frozen=True)
class Written:
    """A run that lies in its folder: the manifest, and where."""

    manifest: dict[str, Any]
    folder: Path

    @property
    def series(self) -> list[NativeSeries]:
        """All series of its ledger."""
        return [NativeSeries.from_dict(entry) for entry in self.manifest["series"]]


def write_run(run: JoinedRun, output: Path, warnings: Sequence[str], warmup_steps: int) -> Written:
    """Write the folder of a run.

    Args:
        warnings: about all that was read; those of the run itself follow.
        warmup_steps: how many training steps its figures leave out at the start.

    Raises:
        UserError: `output` cannot be written.
    """
    folder = _new_folder(output)
    tally = Tally(len(run.stored))
    batches = _native(run, tally)
    write_sealed(folder / "ledger", CELL_ID, PROCESS, {"native": batches}, {"ingested": [f.name for f in run.files]})
    series = list(_described(run, tally))
    manifest = _manifest(run, folder.name, warmup_steps) | {
        "series": [entry.as_dict() for entry in series],
        "unknown_keys": sorted({entry.key for entry in series if not entry.known}),
        "warnings": [*warnings, *run.warnings],
    }
    write_json(folder / MANIFEST, manifest)
    return Written(manifest, folder)


def _new_folder(output: Path) -> Path:
    folder = output / f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-{secrets.token_hex(2)}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        why = f"cannot write runs to {output}: {error.strerror}; choose another folder with --output"
        raise UserError(why) from error
    return folder


def _native(run: JoinedRun, tally: Tally) -> Iterator[pa.RecordBatch]:
    """Rows of the ledger's table from those of the run, counted on the way. No log says when by our clock."""
    names = pa.array([stored.name for stored in run.stored], NATIVE.field("key").type)
    for batch in run.batches():
        tally.add(batch["series"].to_numpy(), batch["value"].to_numpy())
        keys = pa.DictionaryArray.from_arrays(batch["series"], names).dictionary_decode()
        never = pa.nulls(len(batch), NATIVE.field("t").type)
        yield pa.RecordBatch.from_arrays([never, batch["step"], keys, batch["value"]], schema=NATIVE)


def _described(run: JoinedRun, tally: Tally) -> Iterator[NativeSeries]:
    counts = zip(tally.n.tolist(), tally.first.tolist(), tally.last.tolist(), strict=True)
    for number, (stored, (n, first, last)) in enumerate(zip(run.stored, counts, strict=True)):
        if n:
            yield _one(stored, run, run.files_of(number), n, first, last)


def _one(stored: Stored, run: JoinedRun, files: list[str], n: int, first: float, last: float) -> NativeSeries:
    key = stored.series.key
    meaning = run.meaning(key)
    return NativeSeries(
        stored=stored.name,
        key=key,
        part=stored.scope,
        trained=stored.trained,
        files=files,
        known=meaning is not None,
        unit=meaning.unit if meaning else None,
        scope=meaning.scope if meaning else None,
        of=meaning.of if meaning else None,
        scale=UNIT_SCALES.get(meaning.unit, 1.0) if meaning else 1.0,
        measure=meaning.measure if meaning else None,
        same=bool(meaning and meaning.same),
        differs_because=meaning.differs_because if meaning else None,
        n=n,
        first=first,
        last=last,
        quantity=meaning.quantity if meaning else None,
        stage=(meaning.part or "") if meaning else "",
        our_stage=meaning.our_stage if meaning else None,
    )


def _manifest(run: JoinedRun, run_id: str, warmup_steps: int) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    names = ("name", "shape", "sha256", "bytes", "blocks", "values")
    cell: dict[str, Any] = {
        "cell_id": CELL_ID,
        "adapter": run.framework,
        "system": run.framework,
        "layout": CELL,
        "track": CELL,
    }
    cell |= {"repeat": 0, "status": "ok", "cause": None, "reason": None, "wall_s": None, "fault": "none"}
    return {
        "schema": 1,
        "run_id": run_id,
        "created": now,
        "finished": now,
        "plan_hash": None,
        "ingested": True,
        "profile": CELL,
        "rlaxes": rlaxes_version(),
        "cells": [cell | {"twin": CELL_ID}],
        "torn": [],
        "adapters": {run.framework: {"name": run.framework, "title": run.framework, "version": run.version}},
        "framework": run.framework,
        "version": run.version,
        "files": [{name: getattr(file, name) for name in names} for file in run.files],
        "settings": run.settings,
        "steps": run.steps,
        "warmup_steps": warmup_steps,
        "seams": run.seams,
    }
