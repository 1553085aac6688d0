"""What published reports, logs and tables show: only what is written, and of the adapter's own name."""

from dataclasses import replace
from typing import Any

from harness.choose.authors import SOURCES, reported
from harness.choose.evidence import Finding, Lag
from harness.choose.known import known_frameworks
from harness.choose.measured import findings_of, telemetry_of, visible
from harness.compare.rows import Row
from harness.probe.kept import GIVEN
from harness.report.corrections import Correction
from harness.report.dated import DatedReport
from harness.report.model import Axis, ReportModel, SelfReport
from tests.report.reports import row

ADAPTERS = {
    "loop": {"name": "loop", "version": "2.0", "title": "Loop"},
    "loop_vllm": {"name": "loop", "version": "2.0", "title": "Loop"},
}
WITHDRAWN = Correction("run", 1, "2026-11-30", "wrong", "a clock", None, withdrawn=True, rows=())


def _axis(name: str, measured: str | None, adapter: str = "loop") -> Axis:
    return Axis(adapter, name, None, None, None, None, measured, "a table", None, differs=False, stale=None)


def _report(**content: Any) -> ReportModel:
    cells = [
        {"adapter": "loop", "layout": "colocated_sync", "track": "free", "status": "ok", "repeat": 0, "reason": None}
    ]
    told: dict[str, Any] = {"adapters": ADAPTERS, "cells": cells} | content
    return ReportModel("Run", "run", "2026-11-30T10:00:00+00:00", None, "cpu", **told)


def _shown(report: ReportModel) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for name, one in findings_of(report):
        found.setdefault(name, []).append(one)
    return found


def _values(report: ReportModel, axis: str) -> set[tuple[str, ...]]:
    return {tuple(sorted(one.values)) for one in _shown(report)["loop"] if one.axis == axis}


def test_the_words_of_an_observation_show_values() -> None:
    both = (
        "colocated sync: synchronous: generation and training never overlap; "
        "x: asynchronous: generation and training overlap in 3 %"
    )
    axes = [
        _axis("synchrony", both),
        _axis("placement", "x: disaggregated: generation and training on devices of their own"),
        _axis("rollout_engine", "vllm (a server)", "loop_vllm"),
        _axis("training_backend", "torch 2.13.0+cpu, deepspeed 0.19.6"),
        _axis("adapters_lora", "1 024 of 322 176 parameters trained"),
        _axis("multi_turn", "single turn: every response token of the first 9 completions is the policy's"),
        _axis("queue", None),
    ]
    report = _report(axes=axes)
    assert _values(report, "synchrony") == {("synchronous",), ("asynchronous", "fully_asynchronous", "one_step_off")}
    assert _values(report, "placement") == {("disaggregated",)}
    assert _values(report, "rollout_engine") == {("vllm",)}
    assert _values(report, "training_backend") == {("deepspeed",)}
    assert _values(report, "adapters_lora") == {("lora",)}
    assert _values(report, "multi_turn") == {("one_shot",)}
    assert _values(report, "queue") == set()
    assert _values(report, "nodes") == {("one_node",)}
    assert _values(_report(axes=[_axis("adapters_lora", "all 322 176 parameters trained")]), "adapters_lora") == {
        ("full",)
    }


def _row(measure: str, layout: str, *repeats: float) -> Row:
    made = row("loop", ("lag and ratios", measure, measure, "", "updates", "none"))
    return replace(made, layout=layout, value=repeats[0], repeats=repeats)


def test_the_largest_lag_of_all_repeats_counts_beside_its_bound() -> None:
    rows = [_row("lag_max", "disaggregated_async", 2.0, 3.0, 1.0), _row("lag_bound", "disaggregated_async", 2.0)]
    (lag,) = [one for one in _shown(_report(rows=rows))["loop"] if one.axis == "lag_bound"]
    assert lag.lag == Lag(3.0, 2.0, asynchronous=True)
    assert lag.says == "at most 3 updates in disaggregated async, bound 2, 3 repeats"


def _verdict(fault: str, items: list[tuple[str, str, str]], attempts: int = 2) -> dict[str, Any]:
    told = [{"item": name, "state": state, "evidence": evidence} for name, state, evidence in items]
    place = {"adapter": f"loop+{fault}", "layout": "colocated_sync", "fault": fault}
    return place | {"items": told, "continues": True, "attempts": [{}] * attempts}


def test_a_drill_shows_what_it_restored_and_what_it_did_not() -> None:
    items = [
        ("optimizer", "restored", "a digest"),
        ("rng", "restarted", "a digest"),
        ("dataset_cursor", "restored", GIVEN),
    ]
    report = _report(verdicts=[_verdict("trainer_dies", items), _verdict("worker_dies", [], attempts=1)])
    shown = {next(iter(one.values)): one.holds for one in _shown(report)["loop"] if one.axis == "recovery"}
    assert shown == {"resume": True, "keeps_optimizer": True, "keeps_rng": False, "replaces_workers": True}


def test_what_it_printed_of_itself_is_telemetry() -> None:
    own = SelfReport(
        "loop", "x", "free", "perf/tps", "tokens", 3.0, "output_tokens_per_second", 4.0, "", None, "prompts", None
    )
    assert _values(_report(self_report=[own, replace(own, theirs=None, measure="lag_max")]), "telemetry") == {
        ("tokens_per_second",)
    }
    assert telemetry_of("ess_tokens_share") == "ess"
    assert telemetry_of(None) is None


def test_a_run_that_was_withdrawn_shows_nothing_and_a_corrected_one_says_so() -> None:
    model = _report(axes=[_axis("rollout_engine", "vllm")])
    for correction, shown in ((WITHDRAWN, False), (replace(WITHDRAWN, withdrawn=False), True)):
        dated = DatedReport("run", model.created, model, {}, [correction], None)
        (loop,) = known_frameworks({"loop": {}}, ["loop"], [dated])
        assert bool(loop.findings) is shown
        assert all("corrected: wrong" in one.says for one in loop.findings)
        assert bool(loop.ran) is shown


def test_what_was_withdrawn_of_a_run_is_passed_over() -> None:
    rows = [_row("lag_max", "disaggregated_async", 2.0), _row("completion_length", "disaggregated_async", 3.0)]
    report = _report(rows=rows, axes=[_axis("rollout_engine", "vllm")])
    of_lag, of_all = (replace(WITHDRAWN, rows=(pattern,)) for pattern in ("loop/*/*/lag_max", "loop"))
    assert {one.axis for _, one in findings_of(report)} == {"lag_bound", "rollout_engine", "nodes"}
    assert {one.axis for _, one in findings_of(report, [of_lag])} == {"rollout_engine", "nodes"}
    assert list(findings_of(report, [of_all])) == []


def test_published_tables_give_modes_and_devices_and_no_figure() -> None:
    found = list(reported())
    assert {name for name, _ in found} <= set(SOURCES.values())
    assert {one.grade for _, one in found} == {"author-reported"}
    assert any(name == "verl" and one.values == {"many_nodes"} and "128 GPUs" in one.says for name, one in found)
    assert any(name == "areal" and "24 nodes" in one.says for name, one in found)
    assert all(one.axis in {"nodes", "synchrony"} for _, one in found)


def test_what_a_ledger_can_show() -> None:
    assert visible("synchrony", frozenset({"one_step_off", "asynchronous", "fully_asynchronous"}))
    assert not visible("synchrony", frozenset({"fully_asynchronous"}))
    assert visible("recovery", frozenset({"keeps_rng"}))
    assert not visible("recovery", frozenset({"keeps_queue"}))
    assert not visible("nodes", frozenset({"many_nodes"}))
