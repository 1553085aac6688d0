"""Completions that TRL dumped (`log_completions`): `completions/completions_00010.parquet`, one file a logged step.

It holds the last batch of generation before the step was logged, not all of the window (trl/trainer/grpo_trainer.py).
"""

import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from harness.ingest.dump import KEY, Count, Range, Sample
from harness.ingest.flat import whole
from harness.ingest.readers.rollout_samples import number
from harness.ingest.reading import Block, Recognised, Warn

NAME = re.compile(r"completions_\d+\.parquet$")
MAGIC = b"PAR1"
NEEDED = {"step", "prompt", "completion"}
BATCH_ROWS = 512


class TrlCompletions:
    """One file of completions."""

    framework, shape = "trl", "completions"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By its name, since what a Parquet file holds stands at its end."""
        if not (head.startswith(MAGIC) and NAME.search(name)):
            return None
        why = "the name of a file of completions"
        return Recognised(self.framework, self.shape, None, why, part_of=NAME.sub("*", name))

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block for its step. A Parquet file that was cut has no end, and nothing of it can be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with tempfile.NamedTemporaryFile(prefix="rlaxes-completions-") as spool:
            shutil.copyfileobj(stream, spool, 1 << 20)
            spool.flush()
            try:
                with pq.ParquetFile(spool.name) as file:
                    numeric = _numeric(file.schema_arrow) if set(file.schema_arrow.names) >= NEEDED else None
                    if numeric is None:
                        warn(0, "a Parquet file without prompts and completions: nothing read")
                        return
                    rows = (row for batch in file.iter_batches(BATCH_ROWS) for row in batch.to_pylist())
                    yield from _blocks(rows, numeric)
            except (pa.ArrowException, OSError, ValueError) as error:
                warn(0, f"no Parquet file that can be read: {str(error).splitlines()[0][:120]}")


def _numeric(schema: Any) -> list[str]:
    """Reward functions and what they logged beside: the columns of numbers, of which none says which it is."""
    import pyarrow.types as kinds

    number_like = (kinds.is_floating, kinds.is_integer)
    return [
        field.name
        for field in schema
        if field.name not in ("step", "advantage") and any(is_one(field.type) for is_one in number_like)
    ]


def _blocks(rows: Iterator[dict[str, Any]], numeric: list[str]) -> Iterator[Block]:
    """The one column of numbers is the reward; of several, the total stands nowhere, and each is given by its name."""
    at, first, count, columns = None, 0, Count(), dict[str, Range]()
    for row_number, row in enumerate(rows, 1):
        step = whole(row["step"])
        if count.samples and step != at:
            yield Block(at, first, "training", _values(count, columns))
            count = Count()
        if not count.samples:
            at, first, columns = step, row_number, {name: Range() for name in numeric}
        for name, column in columns.items():
            column.add(number(row[name]))
        prompt, completion = _text(row["prompt"]), _text(row["completion"])
        reward = number(row[numeric[0]]) if len(numeric) == 1 else None
        count.add(Sample(prompt, f"{prompt}\0{completion}", not _words(row["completion"]).strip(), reward))
    if count.samples:
        yield Block(at, first, "training", _values(count, columns))


def _values(count: Count, columns: dict[str, Range]) -> dict[str, float]:
    found = count.values()
    if len(columns) != 1:
        found.pop(f"{KEY}without_reward", None)
        for name, column in columns.items():
            found |= column.values(f"{KEY}column/{name}")
    return {key: value for key, value in found.items() if not math.isnan(value)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _words(completion: Any) -> str:
    """What was said in it: its text, or that of all its messages."""
    if isinstance(completion, str):
        return completion
    messages = completion if isinstance(completion, list) else []
    return "".join(str(message.get("content") or "") for message in messages if isinstance(message, dict))
