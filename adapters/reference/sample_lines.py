"""Groups of samples as lines of JSON, with all that they carry: what waits in a queue while a checkpoint is written,
and comes back with the versions that sampled it. Standard library only."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adapters.reference.engine import Completion
from adapters.reference.samples import Sample
from harness.task.bundle import Prompt
from harness.task.verifier import Verdict


def to_lines(groups: Sequence[Sequence[Sample]]) -> str:
    """One line a group, in order, an empty one too; of each prompt the id alone."""
    return "".join(json.dumps([_record(sample) for sample in group]) + "\n" for group in groups)


def from_lines(lines: str, prompts: Iterable[Prompt]) -> list[list[Sample]]:
    """The groups that `to_lines` wrote. Raises KeyError where a prompt is none of `prompts`."""
    known = {prompt.prompt_id: prompt for prompt in prompts}
    return [[_sample(record, known) for record in json.loads(line)] for line in lines.splitlines()]


def _record(sample: Sample) -> dict[str, Any]:
    verdict = None if sample.verdict is None else vars(sample.verdict)
    return vars(sample) | {
        "prompt": sample.prompt.prompt_id,
        "completion": vars(sample.completion),
        "verdict": verdict,
    }


def _sample(record: dict[str, Any], prompts: Mapping[str, Prompt]) -> Sample:
    verdict = None if record["verdict"] is None else Verdict(**record["verdict"])
    whole = {"prompt": prompts[record["prompt"]], "completion": Completion(**record["completion"]), "verdict": verdict}
    return Sample(**record | whole)
