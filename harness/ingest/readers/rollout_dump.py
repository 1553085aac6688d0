"""Rollouts that a framework dumped as JSON lines: what they add up to in each step, counted by us."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import BinaryIO

from harness.ingest.dump import Count
from harness.ingest.flat import whole
from harness.ingest.lines import pieces
from harness.ingest.readers.rollout_samples import SHAPES, Record, Shape
from harness.ingest.reading import Block, Kind, Recognised, Warn
from harness.ingest.told import Told

KEYS = re.compile(rb'"(\w{1,40})"\s*:')
STEP = re.compile(r"(?:train_data_step|global_step_|step_)(\d{1,9})")
ONE_GROUP = re.compile(r"(?:^|/)rollout/-?\d+/\w+\.jsonl$")
"""AReaL's files have one prompt each: a step is all those of a folder (`cat rollout/*/*.jsonl | rlaxes ingest -`)."""
NUMBER = re.compile(r"(?<=step)_?\d+|(?:^|(?<=/))\d+(?=\.jsonl$)|(?<=/)(?:all|effective)(?=/traces)")
"""What tells the files of one run's dump from each other."""
JUDGED = re.compile(r"(?:^|[^a-z])(?:val|evals?|validation)(?:[^a-z]|$)")
"""In the name of a folder: verl's validation and training dumps have the same keys."""
SUBSETS = ("all", "effective")
"""PRIME-RL dumps what came and what was trained on; both have the same step."""


@dataclass(frozen=True)
class RolloutDump:
    """One file of rollouts. What only its name tells: the step, the part of the rollouts, and whether they judged."""

    framework, shape = "any", "rollout dump"
    dump: Shape | None = None
    step: int | None = None
    scope: str = ""
    kind: Kind = "training"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the keys of the first record."""
        first = head.lstrip().split(b"\n", 1)[0]
        if not first.startswith(b"{"):
            return None
        keys = {key.decode() for key in KEYS.findall(first)}
        dump = next((dump for dump in SHAPES if dump.keys <= keys), None)
        if dump is None or ONE_GROUP.search(name):
            return None
        path = PurePath(name.replace(":", "/"))
        found = STEP.findall(name)
        scope = path.parent.name if path.parent.name in SUBSETS else ""
        judged = any(JUDGED.search(part) for part in path.parts[-4:-1])
        reads = RolloutDump(dump, int(found[-1]) if found else None, scope, "validation" if judged else "training")
        why = f"its keys {', '.join(sorted(dump.keys))}"
        return Recognised(dump.framework, self.shape, None, why, reads, NUMBER.sub("*", name))

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block for the records of one step that stand together."""
        told = Told(warn)
        count, at, first, scope = Count(), self.step, 1, self.scope
        for number, record in _records(stream, told):
            shape = self.dump or next((shape for shape in SHAPES if shape.keys <= record.keys()), None)
            if shape is None or not shape.keys <= record.keys():
                told(number, "a record without the keys of a rollout dump: left out")
                continue
            step = whole(record[shape.step]) if shape.step else None
            step = self.step if step is None else step
            if count.samples and step != at:
                yield Block(at, first, self.kind, count.values(), scope)
                count = Count()
            if not count.samples:
                at, first, scope = step, number, self.scope or shape.scope
            _add(count, shape, record, number, told)
        if count.samples:
            yield Block(at, first, self.kind, count.values(), scope)
        told.end()


def _add(count: Count, shape: Shape, record: Record, number: int, told: Told) -> None:
    try:
        samples = list(shape.samples(record))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        told(number, "a record that is not what the framework writes: left out")
        return
    for sample in samples:
        count.add(sample)


def _records(stream: BinaryIO, told: Told) -> Iterator[tuple[int, Record]]:
    for piece in pieces(stream, told):
        lines = piece.data.decode("utf-8", "replace").split("\n")
        for number, line in enumerate(lines, piece.first_line):
            try:
                record = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):
                told(number, "no JSON object, or one that was cut: left out")
                continue
            if isinstance(record, dict):
                yield number, record
