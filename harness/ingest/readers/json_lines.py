"""Metrics as JSON lines, an object a step or several: verl's `file` logger (`{"step": 1, "data": {...}}`,
verl/utils/tracking.py), PRIME-RL's file monitor and anyone's `{"step": 1, "loss": 0.5}`."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from harness.ingest.flat import flatten, kind_of, step_of, whole
from harness.ingest.keymap import framework_of
from harness.ingest.lines import Piece, pieces
from harness.ingest.reading import UNKNOWN, Block, Recognised, Warn
from harness.ingest.told import Told

STEPS = ("step", "train/global_step", "global_step", "_step")
"""A tracker's own `_step` counts calls where it is handed no step: it is the last that is believed."""
WRAPPED = {"step", "data"}
HEAD_LINES = 20
SCOPES = {"time/pack": "orchestrator", "progress/tokens": "orchestrator", "time/forward_backward": "trainer"}
SCOPES |= dict.fromkeys(("perf/throughput_per_gpu", "optim/lr", "entropy/all/mean", "loss/mean"), "trainer")
SCOPES["system/ckpt_disk_free_gib"] = "trainer"
"""PRIME-RL's two processes write to one file without their names, and each has a `time/step` (prime_rl/monitors)."""


class JsonLines:
    """Every line that is an object with numbers in it."""

    framework, shape = "any", "JSON lines"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By a first line that is an object, and one with a step and a number; whose it is, its keys tell."""
        lines = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").split("\n")
        if not lines[0].startswith("{"):
            return None
        found = [_parsed(line) for line in lines[:HEAD_LINES]]
        blocks = [_block(record, 0, line, Told(_quiet)) for record, line in zip(found, lines, strict=False) if record]
        told = [block for block in blocks if block.step is not None and block.values]
        if not told:
            return None
        framework = framework_of({key for block in told for key in block.values}) or UNKNOWN
        return Recognised(framework, self.shape, None, lines[0][:80])

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block an object, in file order."""
        told = Told(warn)
        for piece in pieces(stream, warn):
            yield from _of_piece(piece, told)
        told.end()


def _of_piece(piece: Piece, told: Told) -> Iterator[Block]:
    lines = piece.data.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, piece.first_line):
        record = _parsed(line)
        if record is not None:
            block = _block(record, number, line, told)
            if block.values or block.words:
                yield block
        elif line.strip(" \t\r\ufeff"):
            torn = piece.torn and number == piece.first_line + len(lines) - 1
            told(number, "the file ends within this line: left out" if torn else "no JSON object: line left out")


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line.lstrip("\ufeff"))
    except (ValueError, RecursionError):  # also a whole number of more digits than Python converts
        return None
    return record if isinstance(record, dict) else None


def _block(record: dict[str, Any], number: int, line: str, told: Told) -> Block:
    wrapped = record.keys() == WRAPPED and isinstance(record["data"], dict)
    flat = flatten(record["data"] if wrapped else record, lambda what: told(number, what), line)
    if line.count('":') > flat.keys + 2 * wrapped and (twice := _twice(line)):
        told(number, f"{twice}: twice in one object, the last one holds")
    step = whole(record["step"]) if wrapped else _step(record, flat.values)
    scope = next((scope for key, scope in SCOPES.items() if key in flat.values), "")
    return Block(step, number, kind_of(flat.values), flat.values, scope, flat.words)


def _twice(line: str) -> str | None:
    """The first key that an object of the line has twice."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        found.extend(key for key in keys if keys.count(key) > 1)

    json.loads(line.lstrip("\ufeff"), object_pairs_hook=look)
    return found[0] if found else None


def _step(record: dict[str, Any], values: dict[str, float]) -> int | None:
    """The number of the step, taken out of the values."""
    found = step_of(record, STEPS)
    if found is None:
        return None
    values.pop(found[0], None)
    return found[1]


def _quiet(line: int, words: str) -> None:
    """Looking is not reading."""
