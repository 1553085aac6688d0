"""What watching costs: each framework with the probe over the same without it, median of interleaved pairs.

`python -m benchmarks.observer verl openrlhf` measures those alone.
"""

import sys
from dataclasses import dataclass

from benchmarks.pairs import choice, ratios, show


@dataclass(frozen=True)
class Case:
    """A cell to run with and without the observer, in so many pairs."""

    model: str
    pairs: int
    words: tuple[str, ...]
    wanted: str


SMALL_BATCH = ("task.warmup_steps=1", "task.prompts_per_batch=4", "task.group_size=4", "task.max_tokens=16")
CASES: dict[str, tuple[Case, ...]] = {
    "trl": (
        Case("tiny", 10, ("task.steps=60",), "at most 1.03"),
        Case("smollm2", 10, ("task.steps=4", *SMALL_BATCH), "at most 1.01"),
    ),
    "verl": (Case("tiny", 4, ("layout=colocated_sync", "task.steps=30"), "at most 1.01"),),
    "openrlhf": (Case("tiny", 4, ("layout=disaggregated_sync", "task.steps=60"), "at most 1.01"),),
}
"""A cell of verl or OpenRLHF takes a minute to start."""


def main() -> None:
    """Print the ratio for each framework that is named, and each size of model."""
    named = [name for name in sys.argv[1:] if name in CASES]
    for adapter in named or CASES:
        for case in CASES[adapter]:
            common = [f"adapter={adapter}", f"model={case.model}", f"repeats={case.pairs}", *case.words]
            probed, bare = choice("probed", [*common, "observer=true"]), choice("bare", [*common, "observer=false"])
            show(f"{adapter} probed / bare, {case.model}, seconds of training", ratios(probed, bare), case.wanted)


if __name__ == "__main__":
    main()
