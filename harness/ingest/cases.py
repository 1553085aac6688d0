"""Blocks of a log as cases of the audit, through the key map of its framework."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.audit.quantities import Case, Observation, Where
from harness.ingest.keymap import KeyMap
from harness.ingest.reading import Block

UNIT_SCALES = {"ms": 1e-3, "min": 60.0, "h": 3600.0, "%": 1e-2}
UNIT_SCALES |= {"MB": 1e6, "GB": 1e9, "MiB": 2.0**20, "GiB": 2.0**30}
"""Units that logs use, in those of the quantities."""


@dataclass(frozen=True)
class Place:
    """Where blocks come from: the file, whose log it is, what else is known of the run (`devices_declared`, ...)."""

    file: str
    keys: KeyMap
    version: str | None = None
    given: Mapping[str, float] | None = None


def cases_of(blocks: Iterable[Block], place: Place) -> Iterator[Case]:
    """A case for each block of training, and each that sums up a run, with something that a rule may ask about. One of
    training knows the one before of its own scope, for rules about change."""
    before: dict[str, Case] = {}
    for block in blocks:
        if block.kind not in ("training", "summary"):
            continue
        case = _case(block, place, before.get(block.scope) if block.kind == "training" else None)
        if case.observations and block.kind == "summary":
            yield case
        elif case.observations:
            # Only the last is kept: a chain of all earlier cases would hold the whole log in memory.
            before[block.scope] = Case(case.name, case.observations, case.facts)
            yield case


def _case(block: Block, place: Place, earlier: Case | None) -> Case:
    found = [seen for key, value in block.values.items() if (seen := _observation(key, value, block, place))]
    if block.step is not None and block.kind == "training":
        where = Where(place.file, block.line, "step", block.step)
        found.append(Observation("step_number", float(block.step), where))
    for quantity, value in (place.given or {}).items():
        found.append(Observation(quantity, value, Where(place.file, 0, "given")))
    name = f"step {block.step}" if block.step is not None else f"line {block.line}"
    return Case(f"{name} of {block.scope}" if block.scope else name, tuple(found), block.words, earlier)


def _observation(key: str, value: float, block: Block, place: Place) -> Observation | None:
    meaning = place.keys.meaning(key, place.version, block.words.get("mode"))
    if meaning is None or meaning.quantity is None:
        return None
    where = Where(place.file, block.line, key, block.step)
    return Observation(meaning.quantity, value * UNIT_SCALES.get(meaning.unit, 1.0), where, meaning.part or "")
