"""PRIME-RL's trainer benchmark: `{"config": {...}, "metrics": {...}}` as JSON, one record or a list of them
(benchmarks/scripts/run_single_benchmark.py, export_benchmark_json in src/prime_rl/trainer/utils.py).

A record is of a whole run: statistics over its steps but the first. Keys are `config/num_gpus`, `metrics/mfu/mean`.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from harness.ingest.flat import LONGEST_WORD, flatten
from harness.ingest.json_items import Item, json_items
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

SIGNS = (b'"config"', b'"micro_batches"', b'"metrics"', b'"step_time"')
PARTS = frozenset({"config", "metrics"})


class PrimeRlBenchmark:
    """Every record; of one whose command failed only the settings, since its metrics are written as 0."""

    framework, shape = "prime_rl", "benchmark"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By a JSON document with the names of its settings and its metrics."""
        if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") and all(sign in head for sign in SIGNS):
            return Recognised(self.framework, self.shape, None, "config with micro_batches, metrics with step_time")
        return None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block of kind summary a record, its scope the name of its file or its place in the list."""
        told = Told(warn)
        single: dict[str, Any] = {}
        for place, item in enumerate(json_items(stream, warn), start=1):
            if item.key:
                single[item.key] = item.value
            elif isinstance(item.value, dict) and item.value.keys() >= PARTS:
                yield _block(item, f"record {place}", told)
            else:
                told(item.line, "an item without config and metrics: left out")
        if single.keys() >= PARTS:
            yield _block(Item("", single, 1, "Infinity"), "", told)
        told.end()


def _block(item: Item, scope: str, told: Told) -> Block:
    config = item.value["config"] if isinstance(item.value["config"], dict) else {}
    record = item.value | {"config": {key: _short(value) for key, value in config.items() if value is not None}}
    if config.get("success") is False:
        told(item.line, "a command that failed: its metrics, which are written as 0, were left out")
        del record["metrics"]
    flat = flatten(record, lambda what: told(item.line, what), item.text)
    return Block(None, item.line, "summary", flat.values, flat.words.pop("source_file", scope), flat.words)


def _short(value: Any) -> Any:
    """The reason of a failure may be all that a framework had to say about its memory."""
    return value[:LONGEST_WORD] if isinstance(value, str) else value
