"""The hashes that tie a run to its prompts, tokenizer and weights. Standard library only."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

_CHUNK = 1 << 20


def sha256_text(text: str) -> str:
    """Hex SHA-256 of UTF-8 text."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_json(value: Any) -> str:
    """Hex SHA-256 of a JSON value, whatever the order of its keys."""
    return sha256_text(json.dumps(value, sort_keys=True, separators=(",", ":")))


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checkpoint_hash(path: Path) -> str:
    """Hex SHA-256 over the tensors' bytes in the order of their names, so that two files that differ only in their
    header or layout hash alike. `path` is one safetensors file (format: 8-byte length, JSON header, data).
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        for name in sorted(header):
            start, end = header[name]["data_offsets"]
            file.seek(8 + length + start)
            for at in range(start, end, _CHUNK):
                digest.update(file.read(min(_CHUNK, end - at)))
    return digest.hexdigest()
