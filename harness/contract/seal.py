"""Hashes of a sealed file by block, so that a change of one byte is found with its place."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

BLOCK = 256 * 1024


def _blocks(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield hashlib.blake2b(block, digest_size=16).hexdigest()


def seal_file(path: Path) -> dict[str, Any]:
    """Size in bytes and the BLAKE2b hash of each 256 KiB block of a file."""
    return {"bytes": path.stat().st_size, "blocks": list(_blocks(path))}


def broken_places(path: Path, sealed: dict[str, Any]) -> list[str]:
    """Where a file differs from its seal, in words a person can act on; empty where it does not."""
    if not path.exists():
        return ["the file is missing"]
    places = []
    if path.stat().st_size != sealed["bytes"]:
        places.append(f"{path.stat().st_size} bytes where {sealed['bytes']} were sealed")
    for number, (found, expected) in enumerate(zip(_blocks(path), sealed["blocks"], strict=False)):
        if found != expected:
            start, end = number * BLOCK, min((number + 1) * BLOCK, sealed["bytes"])
            places.append(f"bytes {start}-{end - 1} changed{_unreadable(path)}")
    return places


def _unreadable(path: Path) -> str:
    """Name the row group and column whose page checksum fails, where the damage lies in a page."""
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except (OSError, ValueError) as error:
        return f": the footer cannot be read ({str(error).splitlines()[0]})"
    for group in range(file.metadata.num_row_groups):
        for column in file.schema_arrow.names:
            try:
                file.read_row_group(group, columns=[column])
            except (OSError, ValueError):
                return f": column {column} of row group {group} fails its checksum"
    return ""


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that a reader sees either the old file or the whole new one."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
