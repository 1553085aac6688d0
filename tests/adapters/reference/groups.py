"""Samples and groups of them without a model, for the tests of what moves them."""

from typing import Any

from adapters.reference.engine import Completion
from adapters.reference.samples import Sample
from harness.task.bundle import Prompt


def sample(name: str, length: int, version: int = 0, **fields: Any) -> Sample:
    """A sample of `length` policy tokens; the group is what stands before the last dot of its name."""
    prompt = Prompt("p", [], "2", {}, "1 + 1 =", [1, 2, 3])
    completion = Completion([7] * length, [-0.5] * length, "eos", "reported", 0, 1, 2, 3)
    group = name.rpartition(".")[0]
    return Sample(name, group, "gen-0", prompt, completion, version, version, truncated=False, **fields)


def group(name: str, lengths: list[int], version: int = 0) -> list[Sample]:
    """A group with a sample for each length."""
    return [sample(f"{name}.g{place}", length, version) for place, length in enumerate(lengths)]


class Queued:
    """A probe that keeps the rows of the `queue` table."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def queue(self, **row: Any) -> None:
        """Keep a row."""
        self.rows.append(row)
