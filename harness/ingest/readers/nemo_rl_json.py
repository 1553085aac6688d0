"""NeMo RL's metrics as one JSON object, `{"train/loss": {"1": 0.5, "2": 0.4}, ...}`: a key, and its steps as text
(tests/json_dump_tb_logs.py in its repository, which makes it of TensorBoard's event files).
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from harness.ingest.flat import flatten
from harness.ingest.json_items import json_items
from harness.ingest.reading import Block, Kind, Recognised, Warn
from harness.ingest.told import Told

START = re.compile(rb'"((?:timing/)?(?:train|performance|validation|setup)/[^"]{1,100})"\s*:\s*\{\s*"\d+"\s*:')
STEP = re.compile(r"\d{1,15}$")
VALIDATION = ("validation/", "timing/validation/")
MONITOR = "ray/"
"""Keys of the GPU monitor, whose steps are its samples, and none of training."""


class NemoRlJson:
    """Every step of every key."""

    framework, shape = "nemo_rl", "metrics by key"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By an object with a key of its loggers and a step under it."""
        if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and (found := START.search(head)):
            return Recognised(self.framework, self.shape, None, found[1].decode("utf-8", "replace"))
        return None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a step, in the order of steps: of training, of validation, and of the GPU monitor's samples."""
        told = Told(warn)
        table: dict[tuple[str, int], dict[str, float]] = {}
        for item in json_items(stream, warn):
            if not isinstance(item.value, dict):
                told(item.line, "a key without steps: left out")
                continue
            flat = flatten(item.value, lambda what, line=item.line: told(line, what), item.text)  # type: ignore[misc]
            for step, value in flat.values.items():
                if STEP.match(step):
                    table.setdefault((_part(item.key), int(step)), {})[item.key] = value
                else:
                    told(item.line, "a step that is no whole number: left out")
        told.end()
        for (part, number), values in sorted(table.items(), key=lambda cell: cell[0]):
            kind: Kind = "validation" if part == "validation" else "training"
            yield Block(number, 1, kind, values, part if part == MONITOR.rstrip("/") else "")


def _part(key: str) -> str:
    if key.startswith(VALIDATION):
        return "validation"
    return MONITOR.rstrip("/") if key.startswith(MONITOR) else "training"
