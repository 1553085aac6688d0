"""`rlaxes check` over a cell that died and went on: what was lost is counted, and every new law is broken by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.audit.check import check_cell
from harness.contract import BatchRefused, CellLedger, compact, read_cell
from harness.probe import Probe
from tests.ledgers import CELL_ID, rollout, span

TASK = {"group_size": 2}
TOKENS = 4
Row = dict[str, Any]
Change = Callable[[str, Row], Row | None]


@dataclass
class Script:
    """A loop of two batches of two samples a step, that may change any row on its way into the ledger, or drop it."""

    folder: Path
    change: Change = lambda _table, row: row
    clock: int = 1_000

    def tick(self) -> int:
        self.clock += 10
        return self.clock

    def open(self, attempt: int, process: str = "main") -> Probe:
        cell = {"run_id": "run/cell", "cell_id": CELL_ID, "directory": str(self.folder), "attempt": attempt}
        return Probe(cell, process)

    def write(self, probe: Probe, table: str, row: Row) -> None:
        changed = self.change(table, row)
        if changed is None:
            return
        if table == "rollouts":
            probe.accept_rollouts([changed])
        elif table == "queue":
            probe.queue(**changed)
        elif table == "spans":
            probe.add_span(**changed)
        elif table == "faults":
            probe.fault(**changed)
        elif table in {"updates", "publications"}:
            (probe.update if table == "updates" else probe.publication)(**changed)
        else:
            getattr(probe, table)([changed])

    def publish(self, probe: Probe, number: int, version: int, **changes: Any) -> None:
        row = {"published_version": number, "policy_version": version, "t_start": self.tick(), "t_end": self.tick()}
        row |= {"kind": "full", "bytes": 4, "replicas": 1, "acknowledged": 1, "ok": True}
        self.write(probe, "publications", row | changes)
        control = {"replica": 0, "tokens": 1, "engine_logprobs": [-0.5], "trainer_logprobs": [-0.5], "t": self.tick()}
        self.write(probe, "controls", {"published_version": number, "policy_version": version} | control)

    def generate(self, probe: Probe, batch: int, version: int, trace: str, arrives: bool = True) -> None:
        start, end = self.tick(), self.tick()
        decode = span("decode", start, end, output_tokens=2 * TOKENS, policy_version=version) | {"trace_id": trace}
        self.write(probe, "spans", decode)
        if not arrives:
            return
        names = {"trace_id": trace, "group_id": f"p0.b{batch}", "prompt_id": "p0"}
        for place in range(2):
            row = rollout(place, **names, sample_id=f"p0.b{batch}.g{place}", policy_version=version)
            self.write(probe, "rollouts", row | {"t_generate_start": start, "t_generate_end": end})
        self.queue(probe, "put", 2)

    def queue(self, probe: Probe, event: str, depth: int, reason: str | None = None) -> None:
        moved = {"records": 2 * (event != "close"), "tokens": 2 * TOKENS * (event != "close")}
        depths = {"depth_records": depth, "depth_tokens": depth * TOKENS, "depth_bytes": depth * 13}
        self.write(probe, "queue", {"t": self.tick(), "event": event, "reason": reason, **moved, **depths})

    def train(self, probe: Probe, batch: int, step: int) -> None:
        self.queue(probe, "get", 0)
        now = self.tick()
        names = {"batch_id": f"batch-{batch}-mb-0", "step": step}
        for place in range(2):
            name = {"sample_id": f"p0.b{batch}.g{place}"}
            row = {"epoch": 0, "policy_version": step, "policy_tokens": TOKENS, "t_step_start": now, "advantage": 0.5}
            self.write(probe, "trained", {**name, **names, **row, "trainer_logprobs": [-0.5] * TOKENS})
            self.write(probe, "fates", {**name, "fate": "trained", "policy_tokens": TOKENS, "t": now})
        counts = {"records": 2, "groups": 1, "policy_tokens": 2 * TOKENS, "padded_tokens": 0, "applied": True}
        versions = {"policy_version_before": step, "policy_version_after": step + 1}
        self.write(probe, "updates", {**names, **versions, **counts, "t_start": now, "t_end": self.tick()})


def two_attempts(folder: Path, change: Change = lambda _table, row: row) -> CellLedger:
    """Attempt 0 trains batch 0, generates batch 1, checkpoints, trains batch 1, generates batch 2, and dies with batch
    3 under way. Attempt 1 goes on from the checkpoint, loses a replica, and trains batches 1 and 2."""
    script = Script(folder, change)
    first = script.open(0)
    script.publish(first, 0, 0)
    script.generate(first, 0, 0, "gen-0")
    script.train(first, 0, 0)
    script.publish(first, 1, 1)
    script.generate(first, 1, 1, "gen-1")
    mark = first.mark()
    script.train(first, 1, 1)
    script.publish(first, 2, 2)
    script.generate(first, 2, 2, "gen-2")
    script.generate(first, 3, 2, "gen-3", arrives=False)
    first.flush()
    second = script.open(1)
    if restored := change("resumed", {"mark": mark, "checkpoint": "step-1", "step": 1, "policy_version": 1}):
        second.resumed(**restored, restored={})
    script.queue(second, "put", 2, "restored")
    script.publish(second, 2, 1)
    script.train(second, 1, 1)
    script.publish(second, 3, 2, ok=False)
    script.write(second, "faults", {"kind": "publication_refused", "cause": "system", "where": "p", "detail": "cut"})
    script.publish(second, 3, 2)
    replica = script.open(1, "rollout-0")
    script.generate(replica, 2, 2, "gen-2~1", arrives=False)
    replica.flush()
    second.process_died("rollout-0", "killed")
    script.write(second, "faults", {"kind": "rollouts_lost", "cause": "system", "where": "gen-2~1", "detail": "killed"})
    script.generate(second, 2, 2, "gen-2~1.r1")
    script.queue(second, "close", 2, "records")
    script.train(second, 2, 2)
    second.note("settings", {"minibatches": 1, "inner_epochs": 1, "lag_bound": 0})
    second.close()
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return read_cell(folder / "ledger", CELL_ID)


def _rules(ledger: CellLedger) -> set[str]:
    return {violation.rule for violation in check_cell(ledger.directory, ledger.cell_id, TASK, None)}


def test_a_cell_that_died_and_went_on_is_lawful(tmp_path: Path) -> None:
    ledger = two_attempts(tmp_path)
    assert check_cell(ledger.directory, ledger.cell_id, TASK, None) == []
    assert ledger.table("trained")["sample_id"].to_pylist() == [f"p0.b{b}.g{g}" for b in range(3) for g in range(2)]
    assert ledger.table("lost_trained")["sample_id"].to_pylist() == ["p0.b1.g0", "p0.b1.g1"]
    assert ledger.table("lost_rollouts")["trace_id"].to_pylist() == ["gen-2"] * 2
    assert ledger.table("lost_publications")["published_version"].to_pylist() == [2]


def test_a_sample_may_be_made_anew_and_lost_by_several_attempts(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for attempt in range(3):
        probe = script.open(attempt)
        if attempt:
            probe.resumed(None, None, 0, 0, {})
        script.publish(probe, 0, 0)
        script.generate(probe, 0, 0, "gen-0")
        if attempt < 2:
            probe.flush()
    script.train(probe, 0, 0)
    probe.note("settings", {"minibatches": 1, "inner_epochs": 1, "lag_bound": 0})
    probe.close()
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    ledger = read_cell(tmp_path / "ledger", CELL_ID)
    assert ledger.table("lost_rollouts")["sample_id"].to_pylist() == ["p0.b0.g0", "p0.b0.g1"] * 2
    assert check_cell(ledger.directory, ledger.cell_id, TASK, None) == []


def _at(table: str, column: str, value: Any, **where: Any) -> Change:
    """Set a column of the rows of a table that match."""

    def change(of: str, row: Row) -> Row | None:
        here = of == table and all(row.get(key) == wanted for key, wanted in where.items())
        return row | {column: value} if here else row

    return change


def _without(table: str, **where: Any) -> Change:
    def change(of: str, row: Row) -> Row | None:
        return None if of == table and all(row.get(key) == wanted for key, wanted in where.items()) else row

    return change


BREACHES: list[tuple[str, Change]] = [
    ("tokens_close", _without("faults", kind="rollouts_lost")),
    ("tokens_close", _at("spans", "output_tokens", 7, trace_id="gen-2")),
    ("fate_has_reason", _at("fates", "fate", "in_flight", sample_id="p0.b2.g0")),
    ("fate_of_each_sample", _without("fates", sample_id="p0.b1.g1")),
    ("trained_in_one_batch", _at("trained", "sample_id", "p0.b0.g0", sample_id="p0.b2.g0")),
    ("trained_once_an_epoch", _at("trained", "sample_id", "p0.b0.g0", sample_id="p0.b2.g0")),
    ("lag_bound", _at("rollouts", "policy_version", 0, sample_id="p0.b2.g0")),
    ("version_served", _at("rollouts", "policy_version", 1, sample_id="p0.b2.g0", trace_id="gen-2~1.r1")),
    ("version_of_span", _at("rollouts", "policy_version", 1, sample_id="p0.b2.g0", trace_id="gen-2~1.r1")),
    ("refusal_declared", _without("faults", kind="publication_refused")),
    ("publication_chain", _at("publications", "published_version", 5, published_version=3)),
    ("controls_of_publication", _at("controls", "published_version", 9, published_version=3)),
    ("controls_of_publication", _at("controls", "trainer_logprobs", [], published_version=1)),
    ("queue_depth", _at("queue", "depth_tokens", 5, event="put")),
    ("queue_depth", _without("queue", reason="restored")),
    ("queue_admission", _at("queue", "reason", None, event="close")),
    ("one_restore", _without("resumed")),
    ("restored_version", _at("resumed", "policy_version", 0)),
    ("update_chain", _without("updates", step=0)),
    ("flush_missing", _at("resumed", "mark", {"process": "main", "attempt": 0, "flushes": {"fates": 99}})),
]


@pytest.mark.parametrize(("law", "change"), BREACHES, ids=[f"{n}-{law}" for n, (law, _) in enumerate(BREACHES)])
def test_each_law_of_restarts_is_broken_by_name(tmp_path: Path, law: str, change: Change) -> None:
    assert law in _rules(two_attempts(tmp_path, change))


def test_a_replica_that_nobody_declared_dead_is_named(tmp_path: Path) -> None:
    script = Script(tmp_path)
    main = script.open(0)
    script.open(0, "rollout-0").flush()
    main.close()
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    assert _rules(read_cell(tmp_path / "ledger", CELL_ID)) == {"closing_note"}


def test_an_observation_that_the_trainer_scored_is_named(tmp_path: Path) -> None:
    mask = {"policy_mask": [0, 0, 0, 1, 0, 1, 1], "behavior_logprobs": [-0.5, None, -1.0, -0.125]}

    def change(table: str, row: Row) -> Row | None:
        return row | mask if table == "rollouts" else row

    assert "trained_off_policy" in _rules(two_attempts(tmp_path, change))


def test_a_version_of_one_token_that_was_no_longer_served_is_named(tmp_path: Path) -> None:
    def change(table: str, row: Row) -> Row | None:
        late = table == "rollouts" and row["trace_id"] == "gen-2~1.r1"
        return row | {"policy_version": None, "token_policy_versions": [1, 1, 2, 2]} if late else row

    assert {"version_served", "version_of_span", "lag_bound"} <= _rules(two_attempts(tmp_path, change))


@pytest.mark.parametrize(("refused", "broken"), [(True, set()), (False, {"lag_bound"})])
def test_a_refused_publication_makes_older_weights_lawful_and_nothing_else_does(
    tmp_path: Path, refused: bool, broken: set[str]
) -> None:
    script = Script(tmp_path)
    probe = script.open(0)
    script.publish(probe, 0, 0)
    script.generate(probe, 0, 0, "gen-0")
    script.train(probe, 0, 0)
    if refused:
        script.publish(probe, 1, 1, ok=False)
        script.write(probe, "faults", {"kind": "publication_refused", "cause": "system", "where": "p", "detail": "cut"})
    script.generate(probe, 1, 0, "gen-1")
    script.train(probe, 1, 1)
    probe.note("settings", {"minibatches": 1, "inner_epochs": 1, "lag_bound": 0})
    probe.close()
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    found = _rules(read_cell(tmp_path / "ledger", CELL_ID)) - {"controls_of_publication"}
    assert found == broken


def test_a_refused_batch_stays_counted(tmp_path: Path) -> None:
    script = Script(tmp_path)
    probe = script.open(0)
    script.publish(probe, 0, 0)
    script.generate(probe, 0, 0, "gen-0")
    script.write(probe, "spans", span("decode", script.tick(), script.tick(), output_tokens=TOKENS) | {"trace_id": "g"})
    with pytest.raises(BatchRefused):
        probe.accept_rollouts([rollout(7, trace_id="g", reward_total=None)])
    script.train(probe, 0, 0)
    probe.close()
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    assert _rules(read_cell(tmp_path / "ledger", CELL_ID)) == set()
