"""A measured cell as the audit asks about it: its figures, its series, and what its settings and its machine say."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.audit.own import OwnCell
from harness.compare.results import CellResult
from harness.measure.view import CellView


def own_cell(
    cell_id: str, result: CellResult, series: Mapping[str, Any], view: CellView, manifest: Mapping[str, Any]
) -> OwnCell:
    """One cell, only with the figures that have a value."""
    figures = {value.name: value.value for value in result.values if value.value is not None}
    if view.notes.get("distorted_sampling"):
        # Lengths that were forced end at the limit on purpose.
        figures.pop("truncated_share", None)
    return OwnCell(cell_id, figures, series, dict(_given(view, manifest)))


def _given(view: CellView, manifest: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield "devices_declared", float(view.device_count)
    rollouts = view.tables.rollouts
    # The limit is of one turn: where the environment put tokens between turns, a completion may be longer.
    if (rollouts.response_tokens == rollouts.policy_tokens).all() and "max_tokens" in view.context.task:
        yield "length_cap", float(view.context.task["max_tokens"])
    settings = view.notes.get("settings", {})
    if settings.get("lag_bound") is not None:
        updates = settings.get("minibatches", 1) * settings.get("inner_epochs", 1)
        yield "lag_config", float(settings["lag_bound"] + updates - 1)
    if gpus := (manifest.get("machine") or {}).get("gpus"):
        yield "memory_card", float(max(gpu["memory_bytes"] for gpu in gpus))
