"""Runs of ours as cases of the audit: what a report prints of a run is held to the rules that others are held to.

Of a cell that we measured, its figures; of a run that was recorded elsewhere, what its framework wrote. Takes plain
figures and series, so that this room stays below the one that measures them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harness.audit.quantities import Case, Observation, Where
from harness.audit.rule import Finding, findings
from harness.audit.rules import RULES
from harness.contract import CellLedger, NativeSeries

FIGURES: dict[str, tuple[str, str]] = {
    "window_seconds": ("step_seconds", ""),
    "generated_tokens": ("response_tokens", ""),
    "output_tokens_per_second": ("tokens_per_second", ""),
    "output_tokens_per_second_per_device": ("tokens_per_second_per_device", ""),
    "completion_length": ("response_length_mean", ""),
    "completion_length_max": ("response_length_max", ""),
    "truncated_share": ("clipped_share", ""),
    "reward": ("reward_mean", ""),
    "degenerate_fraction": ("degenerate_fraction", ""),
    "grad_norm": ("grad_norm", ""),
    "loss": ("loss", ""),
    "token_lag[smallest]": ("lag_min", ""),
    "token_lag[mean]": ("lag_mean", ""),
    "lag_max": ("lag_max", ""),
    "ess_tokens_share": ("ess_share", "tokens"),
    "ess_sequences_share": ("ess_share", "sequences"),
    "ess_sequences_share_lowest": ("ess_share", "worst step"),
    "log_ratio_mean": ("logprob_difference_mean", ""),
    "log_ratio_max": ("logprob_difference_max", ""),
    "device_memory_peak_bytes[cuda_allocated]": ("memory_allocated", ""),
    "device_memory_peak_bytes[cuda_reserved]": ("memory_reserved", ""),
    "device_memory_peak_bytes[nvml]": ("memory_used", ""),
}
"""A figure's name -> the quantity that it is. The window of a cell is one long step."""
SHARES = (
    "unattributed_share",
    "starving_share",
    "backpressure_share",
    "dropped_share",
    "padding_fraction",
    "lag_coverage",
    "clip_fraction",
    "binding_clip_fraction",
    "infrastructure_error_share",
    "straggler_utilisation_batch",
    "straggler_utilisation_group",
    "pool_utilisation",
)
"""Figures that are shares of something; what they are shares of, no rule asks."""
SERIES = {"loss": "loss", "grad_norm": "grad_norm", "ess_share": "ess_share", "lag_mean": "lag_mean"}
"""Columns of the series `updates`."""


@dataclass(frozen=True)
class OwnCell:
    """A measured cell.

    Attributes:
        cell_id: findings name it, and its ledger as their place.
        figures: by name (`ess_tokens_share`, `pool_utilisation[cpu]`), only those that have a value.
        series: as of `harness.measure.series.cell_series`.
        given: quantities that its settings and its machine say (`length_cap`, `lag_config`, `devices_declared`, ...).
    """

    cell_id: str
    figures: Mapping[str, float]
    series: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, float] = field(default_factory=dict)


def own_findings(cases: Iterable[Case]) -> list[Finding]:
    """What the rules find in them."""
    return [finding for case in cases for finding in findings(case, RULES)]


def cases_of_cell(cell: OwnCell) -> Iterator[Case]:
    """The cell's window as one case, then one for each optimizer step of its series."""
    file = f"ledger/{cell.cell_id}"
    seen = [
        Observation(quantity, cell.figures[name], Where(file, 0, name), part)
        for name, (quantity, part) in FIGURES.items()
        if name in cell.figures
    ]
    seen += [
        Observation("share", value, Where(file, 0, name), name)
        for name, value in cell.figures.items()
        if name.split("[")[0] in SHARES
    ]
    given = tuple(Observation(quantity, value, Where(file, 0, "settings")) for quantity, value in cell.given.items())
    yield Case(f"{cell.cell_id}, all of it", (*seen, *given))
    yield from _steps(cell, file)


def _steps(cell: OwnCell, file: str) -> Iterator[Case]:
    """Each knows the step before it alone."""
    updates = cell.series.get("updates", {})
    before: Case | None = None
    for row, step in enumerate(updates.get("step", ())):
        named = {name: updates[column][row] for column, name in SERIES.items() if column in updates}
        known = {name: value for name, value in named.items() if value is not None and not math.isnan(value)}
        places = {name: Where(file, 0, f"updates.{name}", step) for name in (*known, "step_number")}
        seen = [Observation(name, float(value), places[name]) for name, value in known.items()]
        seen.append(Observation("step_number", float(step), places["step_number"]))
        case = Case(f"{cell.cell_id}, step {step}", tuple(seen), earlier=before)
        before = Case(case.name, case.observations)
        yield case


def native_cases(ledger: CellLedger, series: Sequence[NativeSeries]) -> Iterator[Case]:
    """The training steps of a run that was recorded elsewhere, process by process, as `rlaxes ingest` joined them."""
    asked = {one.stored: one for one in series if one.trained and one.quantity}
    table = ledger.table("native", ["step", "key", "value"])
    rows = table.filter(pc.is_in(table["key"], value_set=pa.array(list(asked), pa.string()))).to_pylist()
    rows.sort(key=lambda row: (asked[row["key"]].part, row["step"] is None, row["step"] or 0))
    file = f"ledger/{ledger.cell_id}"
    for part, of_part in groupby(rows, key=lambda row: asked[row["key"]].part):
        before: Case | None = None
        for step, of_step in groupby(of_part, key=lambda row: row["step"]):
            name = " of ".join(filter(None, (f"step {step}" if step is not None else "no step", part)))
            seen = tuple(_native(asked[row["key"]], row, file) for row in of_step)
            case = Case(name, seen, earlier=before)
            before = Case(name, seen)
            yield case


def _native(one: NativeSeries, row: Mapping[str, Any], file: str) -> Observation:
    where = Where(file, 0, one.key, row["step"])
    return Observation(str(one.quantity), row["value"] * one.scale, where, one.stage)
