"""What published runs show: ours as measured here, those that were read from logs as replayed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness.choose.evidence import MEASURED, REPLAYED, Finding, Lag
from harness.choose.topics import ASYNCHRONOUS
from harness.probe.kept import GIVEN
from harness.report.corrections import Correction
from harness.report.ingested import series_of
from harness.report.model import ReportModel

OF_AXIS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "placement": (
        (r"\bcolocated: (?:the same process|processes)", ("colocated",)),
        (r"\bdisaggregated: generation", ("disaggregated",)),
    ),
    "synchrony": ((r"\bsynchronous: generation", ("synchronous",)), (r"\basynchronous: generation", ASYNCHRONOUS)),
    "training_backend": ((r"\bdeepspeed \d", ("deepspeed",)), (r"\bmegatron-core \d", ("megatron",))),
    "rollout_engine": (
        (r"\bvllm\b", ("vllm",)),
        (r"\bsglang\b", ("sglang",)),
        (r"\btransformers\b", ("transformers",)),
    ),
    "multi_turn": (
        (r"\bsingle turn\b", ("one_shot",)),
        (r"tokens that the policy did not sample", ("multi_turn",)),
    ),
    "adapters_lora": (
        (r"\ball [\d\s]+ parameters trained", ("full",)),
        (r"\d of [\d\s]+ parameters trained", ("lora",)),
    ),
    "queue": ((r"\bat most \d+ records deep", ("batches", "groups", "samples")),),
}
"""What the words of `harness.report.observed` show of an axis. FSDP and DDP are in torch, so that its version shows
neither; DeepSpeed and Megatron-Core are noted by those adapters alone that train with them."""
ITEMS = {
    "optimizer": "keeps_optimizer",
    "lr_scheduler": "keeps_schedule",
    "step_and_version": "keeps_step",
    "rng": "keeps_rng",
    "dataset_cursor": "keeps_data_position",
}
"""The items of a drill's verdict, as values of the axis recovery. Of the others it does not tell what is saved from
what is given anew or was empty."""
TELEMETRY = {
    "output_tokens_per_second": "tokens_per_second",
    "headroom": "mfu",
    "memory_peak": "memory",
    "lag_": "lag",
    "published_lag": "lag",
    "mismatch": "mismatch",
    "ess_": "ess",
}
"""How the names of our figures begin that a framework's own speak of, as values of the axis telemetry."""


def findings_of(report: ReportModel, corrections: Sequence[Correction] = ()) -> Iterator[tuple[str, Finding]]:
    """What a published report shows, by the adapter's own name (that of `trl@1.15.0` is `trl`). What was corrected
    afterwards is said beside it."""
    corrected = "".join(f"; {correction.line()}" for correction in corrections)
    report, gone = _standing(report, corrections)
    if report.ingested:
        yield from _replayed(report, corrected)
        return
    for look in (_axes, _one_machine, _lag, _drills, _own_figures):
        for label, axis, values, says, more in look(report):
            if label in gone:
                continue
            facts = report.adapters.get(label, {})
            name, version = str(facts.get("name") or label), str(facts.get("version"))
            source = f"{report.run_id} ({report.profile}), {label}"
            told = (MEASURED, says + corrected, source, version, report.created[:10])
            yield name, Finding(axis, frozenset(values), *told, **more)


def _standing(report: ReportModel, corrections: Sequence[Correction]) -> tuple[ReportModel, set[str]]:
    """The report without the rows that were withdrawn, and the systems of which no row is left."""
    withdrawn = [correction for correction in corrections if correction.withdrawn]
    left = [row for row in report.rows if not any(correction.touches(row) for correction in withdrawn)]
    return replace(report, rows=left), {row.adapter for row in report.rows} - {row.adapter for row in left}


Look = Iterator[tuple[str, str, tuple[str, ...], str, dict[str, Any]]]


def _axes(report: ReportModel) -> Look:
    for said in report.axes:
        for pattern, values in OF_AXIS.get(said.axis, ()) if said.measured else ():
            if re.search(pattern, str(said.measured)):
                yield said.adapter, said.axis, values, str(said.measured), {}


def _one_machine(report: ReportModel) -> Look:
    for label in sorted({cell["adapter"] for cell in report.cells if cell["status"] == "ok"}):
        yield label.partition("+")[0], "nodes", ("one_node",), "cells ran on one machine", {}


def _lag(report: ReportModel) -> Look:
    bounds = {(row.adapter, row.layout, row.track): row.value for row in report.rows if row.measure == "lag_bound"}
    for row in report.rows:
        values = [value for value in row.repeats if value is not None]
        if row.measure != "lag_max" or not values:
            continue
        most, bound = max(values), bounds.get((row.adapter, row.layout, row.track))
        told = f", bound {bound:g}" if bound is not None else ""
        says = f"at most {most:g} updates in {row.layout.replace('_', ' ')}{told}, {len(values)} repeats"
        yield row.adapter, "lag_bound", (), says, {"lag": Lag(most, bound, row.layout.endswith("_async"))}


def _drills(report: ReportModel) -> Look:
    """An item that the restart's settings give anew says nothing of the checkpoint, and is left out."""
    for verdict in report.verdicts:
        label, place = verdict["adapter"].partition("+")[0], f"drill {verdict['fault']}, {verdict['layout']}"
        if verdict["items"]:
            yield label, "recovery", ("resume",), f"{place}: an attempt went on from a checkpoint", {}
        for item in verdict["items"]:
            if item["item"] in ITEMS and item["evidence"] != GIVEN:
                says, holds = f"{place}: {item['item']} {item['state']}", item["state"] == "restored"
                yield label, "recovery", (ITEMS[item["item"]],), says, {"holds": holds}
        if verdict["fault"] == "worker_dies" and verdict["continues"] and len(verdict["attempts"]) == 1:
            yield label, "recovery", ("replaces_workers",), f"{place}: the run went on without a restart", {}


def _own_figures(report: ReportModel) -> Look:
    """What a framework printed of itself in a run of ours, where it speaks of a figure that the vocabulary names."""
    for own in report.self_report:
        if own.theirs is not None and (value := telemetry_of(own.measure)):
            says = f"it wrote {own.key}: {own.definition}; {own.differs_because}"
            yield own.adapter, "telemetry", (value,), says, {}


def visible(axis: str, values: frozenset[str]) -> bool:
    """Whether a ledger or a log can show any of these values of an axis."""
    alone = {"nodes": {"one_node"}, "recovery": {"resume", "replaces_workers", *ITEMS.values()}}
    alone["telemetry"] = set(TELEMETRY.values())
    shown = [set(group) for _, group in OF_AXIS.get(axis, ())]
    return bool(values & alone.get(axis, set())) or any(group <= values for group in shown)


def telemetry_of(measure: str | None) -> str | None:
    """The value of the axis telemetry that a figure of ours stands for; None where there is none."""
    return next((value for start, value in TELEMETRY.items() if (measure or "").startswith(start)), None)


def _replayed(report: ReportModel, corrected: str) -> Iterator[tuple[str, Finding]]:
    told = report.ingested
    files = ", ".join(file["name"] for file in told["files"])
    for series in series_of(told):
        if value := telemetry_of(series.measure):
            says = f"{series.key} stands in {files}, {series.n} times{corrected}"
            known = (REPLAYED, says, f"{report.run_id} (logs)", told["version"], report.created[:10])
            yield str(told["framework"]), Finding("telemetry", frozenset({value}), *known)
