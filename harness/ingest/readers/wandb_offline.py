"""What W&B leaves on disk of a run: the `run-*.wandb` file, `wandb-summary.json`, `config.yaml`."""

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

import yaml

from harness.ingest.flat import MOST_KEYS, Flat, flatten, kind_of, step_of
from harness.ingest.keymap import framework_of
from harness.ingest.readers.wandb_records import HEAD, records
from harness.ingest.reading import UNKNOWN, Block, Recognised, Warn
from harness.ingest.told import Told

STEPS = ("train/global_step", "global_step", "step", "_step")
"""W&B's own `_step` counts calls of `log` where a framework hands it no step; then one of the others is the step."""
OWN = "_wandb"
"""The key of what W&B notes of itself."""
LARGEST_DOCUMENT = 16 * 1024 * 1024
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?")


class WandbRun:
    """The file that an offline run, or one that was synchronised later, wrote its history into."""

    framework, shape = "any", "W&B run"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By its first bytes; whose it is, the keys of the first steps tell."""
        if not head.startswith(HEAD):
            return None
        keys = {
            key for block in self.blocks(io.BytesIO(head), _quiet) if block.kind != "config" for key in block.values
        }
        return Recognised(framework_of(keys) or UNKNOWN, self.shape, None, "the head of a W&B file")

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """Settings where they stand, a block a call of `log`, and at the end the summary; `line` counts records."""
        told = Told(warn)
        summary: dict[str, Any] = {}
        number = 0
        for number, record in records(stream, told):
            complain = partial(told, number)
            if record.HasField("history"):
                yield from _history(record.history, number, complain)
            for items in (record.run.config, record.config):
                if items.update:
                    flat = flatten(_items(items.update, complain), _nothing)
                    yield Block(None, number, "config", flat.values, words=flat.words)
            for items in (record.run.summary, record.summary):
                if len(summary) < MOST_KEYS:
                    summary |= _items(items.update, complain)
                for item in items.remove:
                    summary.pop(_key(item), None)
        yield from _last(flatten(summary, _nothing), number)
        told.end()


def _history(history: Any, number: int, complain: Callable[[str], None]) -> Iterator[Block]:
    record = _items(history.update, complain)
    if history.HasField("step"):
        record.setdefault("_step", history.step.num)
    flat = flatten(record, complain)
    found = step_of(record, STEPS)
    if found is not None:
        flat.values.pop(found[0], None)
    if flat.values or flat.words:
        yield Block(found[1] if found else None, number, kind_of(flat.values), flat.values, words=flat.words)


def _items(items: Iterable[Any], complain: Callable[[str], None]) -> dict[str, Any]:
    """Values by key, nested keys joined with `/`. A 1e999 in them is no number, a null is none that anybody logged."""
    found: dict[str, Any] = {}
    for item in items:
        if _key(item).startswith(OWN):
            continue
        try:
            value = json.loads(item.value_json, parse_float=_finite)
        except (ValueError, RecursionError):
            complain(f"{_key(item)}: a value that cannot be read: left out")
            continue
        if value is not None:
            found[_key(item)] = value
    return found


def _finite(text: str) -> float | str:
    number = float(text)
    return text if number in (float("inf"), -float("inf")) else number


def _key(item: Any) -> str:
    return "/".join(item.nested_key) or item.key


def _last(flat: Flat, number: int) -> Iterator[Block]:
    if flat.values or flat.words:
        yield Block(None, number, "summary", flat.values, words=flat.words)


class WandbSummary:
    """`wandb-summary.json`: the last value of each key."""

    framework, shape = "any", "W&B summary"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By its name, or by W&B's own two keys in one object."""
        named = name.endswith("wandb-summary.json")
        if not (head.lstrip().startswith(b"{") and (named or (b'"_wandb"' in head and b'"_runtime"' in head))):
            return None
        keys = re.findall(r'"([^"\\]{1,200})"\s*:', head.decode("utf-8", "replace"))
        return Recognised(framework_of(set(keys)) or UNKNOWN, self.shape, None, "W&B's summary by its name or keys")

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """One block of the whole run."""
        text = stream.read(LARGEST_DOCUMENT).decode("utf-8", "replace")
        told = Told(warn)
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            record.pop(OWN, None)
            yield from _last(flatten(record, partial(told, 1), text), 1)
        else:
            told(1, "no JSON object, or one that was cut: nothing read")
        told.end()


class WandbConfig:
    """`config.yaml`: the settings of a run, each under `value`."""

    framework, shape = "any", "W&B config"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By W&B's own entry, and the two words that each entry has or had."""
        if (
            b"\0" in head
            or not re.search(rb"(?m)^(_wandb:|wandb_version:)", head)
            or not re.search(rb"(?m)^ +value:", head)
        ):
            return None
        return Recognised(UNKNOWN, self.shape, None, "W&B's own entry _wandb")

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """One block: numbers as values, all else as words."""
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # every leaf stays the text that it is
        try:
            content = yaml.load(stream.read(LARGEST_DOCUMENT), Loader=loader)  # noqa: S506  (builds nothing but text)
        except (yaml.YAMLError, ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            warn(1, "no YAML that can be read, or one that was cut: nothing read")
            return
        entries = {
            key: entry["value"] for key, entry in content.items() if isinstance(entry, dict) and "value" in entry
        }
        words = flatten({key: value for key, value in entries.items() if key != OWN}, _nothing).words
        values = {key: float(text) for key, text in words.items() if NUMBER.fullmatch(text)}
        yield Block(None, 1, "config", values, words={key: text for key, text in words.items() if key not in values})


def _quiet(line: int, words: str) -> None:
    """Looking is not reading."""


def _nothing(what: str) -> None:
    """Settings hold lists and nulls by right."""
