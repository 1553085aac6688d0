"""Published tables as cases: rows of a JSON, CSV or markdown table, by the names of their columns [12.1.5, 12.2.5].

Rows of JSON lines may hold what is stored of the tokens of a completion (`harness.audit.tokens`)."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from harness.audit.quantities import QUANTITIES, Case, Observation, Where
from harness.audit.tokens import token_observations
from harness.errors import UserError

SEQUENTIAL = "stage_seconds"
COLUMNS: dict[str, tuple[str, str]] = {
    "step": ("step_seconds", ""),
    "step s": ("step_seconds", ""),
    "step_seconds": ("step_seconds", ""),
    "core_s": ("run_seconds", ""),
    "core_rl_time_s": ("run_seconds", ""),
    "gen": (SEQUENTIAL, "gen"),
    "old_log_prob": (SEQUENTIAL, "old_log_prob"),
    "ref": (SEQUENTIAL, "ref"),
    "adv": (SEQUENTIAL, "adv"),
    "update_actor": (SEQUENTIAL, "update_actor"),
    "weight_sync": (SEQUENTIAL, "weight_sync"),
    "other": (SEQUENTIAL, "other"),
    "train_s": (SEQUENTIAL, "train"),
    "training_phase_s": (SEQUENTIAL, "train"),
    "weight_sync_s": (SEQUENTIAL, "weight_sync"),
    "update": (SEQUENTIAL, "update_actor"),
    "wait": ("wait_seconds", "wait"),
    "gen(wait)": ("wait_seconds", "wait"),
    "wait_s": ("wait_seconds", "wait"),
    "buffer_wait_s": ("wait_seconds", "wait"),
    "wait_prev_gen": ("wait_seconds", "wait"),
    "generate_sequences": ("concurrent_seconds", "generate_sequences"),
    "validate": ("outside_seconds", "validate"),
    "gpus": ("devices_declared", ""),
    "gbs": ("samples", ""),
    "avg len": ("response_length_mean", ""),
    "avg_len": ("response_length_mean", ""),
    "tok/s/gpu": ("tokens_per_second_per_device", ""),
    "tok_s_gpu": ("tokens_per_second_per_device", ""),
    "tokens": ("total_tokens", ""),
    "consumed_response_tokens": ("response_tokens", ""),
    "updates": ("steps", ""),
    "overlap gain": ("overlap_gain", ""),
    "mfu": ("mfu", ""),
}
"""A column's name -> quantity and part, beside the quantities' own names. Other columns are labels; `id` or `model`
name the row."""
NAMELESS = {"nemo_rl_identity": ("row", "avg_len", "gpus", "gbs", "tok_s_gpu", "step", "expect")}
"""Columns of a published list of rows that does not name them, by the key that it stands under."""
NAMES = ("id", "row", "arm")
LABELS = ("version, hw", "model", "mode", "policy", "engine")
"""What names a row that has no name of its own, all of them together."""
SEVERAL = " / "
"""Between the values of a cell that speaks of several runs, as `on / 1-off` beside `256 / 512`."""
FACTS = ("mode", "engine", "policy", "expect")
_NUMBER = re.compile(r"^\**\s*([-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?)\s*\**$")
Row = Mapping[str, Any]


def read_table(path: Path) -> list[Case]:
    """The cases of a file of tables.

    Raises:
        UserError: it holds no table that this reads: a JSON list of objects (or an object with `rows`), CSV with a
            head, or markdown with `|`.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    readers = {".json": _json_rows, ".jsonl": _json_lines}
    try:
        reader = readers.get(path.suffix)
        found = list(reader(text)) if reader else list(_text_rows(text, path.suffix))
    except (ValueError, RecursionError, csv.Error) as error:
        raise UserError(f"{path}: {str(error).splitlines()[0]}") from error
    cases = [case for number, (line, row) in enumerate(found) if (case := _case(row, path.name, line, number))]
    if not cases:
        wanted = "a JSON list of objects, CSV with a head or a markdown table, with a column of"
        raise UserError(f"{path}: no table that the audit reads; it wants {wanted} {', '.join(COLUMNS)}")
    return _with_family(_beside_the_first(cases))


def cases_of_rows(rows: Sequence[Row], name: str) -> list[Case]:
    """The cases of rows that were read already; `name` says where they stand."""
    found = [case for number, row in enumerate(rows) if (case := _case(row, name, 0, number))]
    return _with_family(_beside_the_first(found))


def _json_rows(text: str) -> Iterator[tuple[int, Row]]:
    for rows in _lists_of(json.loads(text)):
        for row in rows:
            yield _line_of(text, row), row


def _json_lines(text: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and isinstance(row := json.loads(line), dict):
            yield number, row


def _lists_of(content: Any) -> Iterator[list[Row]]:
    """Every list of objects in the document; lists of lists under `columns` and `rows` become objects."""
    if isinstance(content, list):
        if content and all(isinstance(row, dict) for row in content):
            yield content
        return
    if not isinstance(content, dict):
        return
    columns, rows = content.get("columns"), content.get("rows")
    if isinstance(columns, list | tuple) and isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        yield [dict(zip(columns, row, strict=False)) for row in rows]
        return
    for key, value in content.items():
        named = {"columns": NAMELESS[key]} if key in NAMELESS and isinstance(value, dict) else {}
        yield from _lists_of(value | named if named else value)


def _line_of(text: str, row: Row) -> int:
    """The line where the row's name stands first; 0 where it has none."""
    name = next((row[key] for key in NAMES if isinstance(row.get(key), str)), None)
    at = text.find(json.dumps(name)) if name else -1
    return 0 if at < 0 else text.count("\n", 0, at) + 1


def _text_rows(text: str, suffix: str) -> Iterator[tuple[int, Row]]:
    if suffix == ".csv":
        for number, row in enumerate(csv.DictReader(io.StringIO(text)), 2):
            yield number, {str(key).strip().lower(): value for key, value in row.items()}
        return
    head: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if head is None:
            head = [cell.lower() for cell in cells]
        elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            yield from ((number, row) for row in _each(dict(zip(head, cells, strict=False))))


def _each(row: dict[str, str]) -> Iterator[Row]:
    """The rows that one of several runs stands for: as many as most of its cells of several values have."""
    parts = {key: cell.split(SEVERAL) for key, cell in row.items()}
    counts = Counter(len(values) for values in parts.values() if len(values) > 1)
    several = counts.most_common(1)[0][0] if counts else 1
    for place in range(several):
        yield {key: values[place] if len(values) == several else row[key] for key, values in parts.items()}


def _case(row: Row, file: str, line: int, number: int) -> Case | None:
    keyed = {str(key).strip().lower(): value for key, value in row.items()}
    labels = ", ".join(str(keyed[key]).strip("* ") for key in LABELS if keyed.get(key))
    name = next((str(keyed[key]) for key in NAMES if keyed.get(key)), labels or f"row {number + 1}")
    observations = []
    for key, value in keyed.items():
        quantity, part = COLUMNS.get(key, (key, ""))
        if quantity in QUANTITIES and (amount := _amount(value)) is not None:
            observations.append(Observation(quantity, amount, Where(file, line, key), part))
    observations += token_observations(keyed, file, line)
    facts = {key: str(keyed[key]) for key in FACTS if keyed.get(key) is not None}
    if keyed.get("model") and keyed.get("policy"):
        facts["compared"] = ", ".join(str(keyed[key]) for key in LABELS[:2] if keyed.get(key))
    return Case(name, tuple(observations), facts) if observations else None


def _amount(value: Any) -> float | None:
    """A number, also with thousands separators or in bold; nothing that only begins with one."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    found = _NUMBER.match(str(value))
    return float(found[1].replace(",", "")) if found else None


def _beside_the_first(cases: Sequence[Case]) -> list[Case]:
    """Rows of one model under several policies or modes are there to be compared: each with the first of them."""
    first: dict[str, Case] = {}
    out = []
    for case in cases:
        length, one = case.one("response_length_mean"), first.setdefault(case.facts.get("compared", case.name), case)
        other = one.one("response_length_mean")
        seen = case.observations
        if one is not case and length is not None and other is not None:
            seen = (*seen, Observation("response_length_of_other", other.value, length.where))
        out.append(Case(case.name, seen, case.facts))
    return out


def _with_family(cases: Sequence[Case]) -> list[Case]:
    """Cases with rate, devices, time and samples, beside what the other rows of their table imply for the prompt."""
    implied = {id(case): tokens for case in cases if (tokens := _implied(case)) is not None}
    prompts = {key: value - length for key, (value, length) in implied.items()}
    return [_beside(case, implied.get(id(case)), prompts) for case in cases]


def _implied(case: Case) -> tuple[float, float] | None:
    """Tokens of one sample by the rate, and the response's part of them as printed."""
    names = ("tokens_per_second_per_device", "devices_declared", "step_seconds", "samples", "response_length_mean")
    found = [case.one(name) for name in names]
    if any(one is None or not one.value for one in found):
        return None
    rate, devices, step, samples, length = (one.value for one in found if one is not None)
    return rate * devices * step / samples, length


def _beside(case: Case, implied: tuple[float, float] | None, prompts: Mapping[int, float]) -> Case:
    others = [prompt for key, prompt in prompts.items() if key != id(case)]
    if implied is None or len(others) < 2:
        return case
    where = next(o.where for o in case.observations if o.quantity == "tokens_per_second_per_device")
    beside = {"implied_sample_tokens": implied[0], "prompt_of_family": median(others)}
    family = tuple(Observation(quantity, value, where) for quantity, value in beside.items())
    return Case(case.name, case.observations + family, case.facts)
