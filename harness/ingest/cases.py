"""Blocks of a log as cases of the audit, through the key map of its framework."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.audit.quantities import Case, Observation, Where
from harness.ingest.flat import CLOCKS
from harness.ingest.keymap import KeyMap
from harness.ingest.reading import Block

UNIT_SCALES = {"ms": 1e-3, "min": 60.0, "h": 3600.0, "%": 1e-2}
UNIT_SCALES |= {"TFLOP/s": 1e12, "MB": 1e6, "GB": 1e9, "MiB": 2.0**20, "GiB": 2.0**30}
"""Units that logs use, in those of the quantities."""


@dataclass(frozen=True)
class Place:
    """Where blocks come from: the file, whose log it is, what else is known of the run (`devices_declared`, ...)."""

    file: str
    keys: KeyMap
    version: str | None = None
    given: Mapping[str, float] | None = None


def cases_of(blocks: Iterable[Block], place: Place) -> Iterator[Case]:
    """A case for each step of training, and each block that sums up a run, with something that a rule may ask about.
    One of training knows the one before of its own scope, for rules about change."""
    rows: dict[str, list[Block]] = {}
    before: dict[str, Case] = {}
    for block in blocks:
        if block.kind == "summary":
            yield from _case([block], place, None)
        elif block.kind == "training":
            if (held := rows.get(block.scope)) and not _goes_on(held, block):
                yield from _step(held, place, before)
                held.clear()
            rows.setdefault(block.scope, []).append(block)
    for held in rows.values():
        yield from _step(held, place, before)


def _goes_on(held: list[Block], block: Block) -> bool:
    """Whether a block is one more row of the step before it: a logger that writes several a step gives each number but
    the time once, so that a row which has one of them again is of a run that came back to the step."""
    keys = block.values.keys() - CLOCKS
    return block.step == held[0].step is not None and all(row.values.keys().isdisjoint(keys) for row in held)


def _step(rows: list[Block], place: Place, before: dict[str, Case]) -> Iterator[Case]:
    for case in _case(rows, place, before.get(rows[0].scope)):
        # Only the last is kept: a chain of all earlier cases would hold the whole log in memory.
        before[rows[0].scope] = Case(case.name, case.observations, case.facts)
        yield case


def _case(rows: list[Block], place: Place, earlier: Case | None) -> Iterator[Case]:
    first = rows[0]
    found = [
        seen for row in rows for key, value in row.values.items() if (seen := _observation(key, value, row, place))
    ]
    if first.step is not None and first.kind == "training":
        where = Where(place.file, first.line, "step", first.step)
        found.append(Observation("step_number", float(first.step), where))
    for quantity, value in (place.given or {}).items():
        found.append(Observation(quantity, value, Where(place.file, 0, "given")))
    name = f"step {first.step}" if first.step is not None else f"line {first.line}"
    words = {key: word for row in rows for key, word in row.words.items()}
    if found:
        yield Case(f"{name} of {first.scope}" if first.scope else name, tuple(found), words, earlier)


def _observation(key: str, value: float, block: Block, place: Place) -> Observation | None:
    meaning = place.keys.meaning(key, place.version, block.words.get("mode"))
    if meaning is None or meaning.quantity is None:
        return None
    where = Where(place.file, block.line, key, block.step)
    return Observation(meaning.quantity, value * UNIT_SCALES.get(meaning.unit, 1.0), where, meaning.part or "")
