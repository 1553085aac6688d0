"""What rejection costs: tokens, and lengths of what was dropped beside those of what was trained on."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.contract import LedgerWriter, compact, read_cell
from harness.measure.api import MeasureContext, measure_cell
from harness.measure.values import Value
from tests.fakes import figures as fake_figures
from tests.ledgers import CELL_ID, rollout, span, write_lawful
from tests.measure.loops import LENGTHS, TASK, at, figures, loop_cell

Figures = dict[str, Value]
STALE = "rejected_stale: lag 3, max_lag 2"
DROPPED = [(STALE, 12), (STALE, 4), ("rejected_stale: waited longer than max_age_s 1", 8), ("truncated", 100)]


def fate(number: int, reason: str, tokens: int) -> dict[str, Any]:
    row = {"sample_id": f"gone.{number}", "fate": "dropped", "reason": reason, "policy_tokens": tokens}
    return row | {"t": at(2, number)}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    fates = [fate(number, *row) for number, row in enumerate(DROPPED)]
    early = {"sample_id": "early", "fate": "dropped", "reason": STALE, "policy_tokens": 7, "t": at(0, 50)}
    return figures(loop_cell(tmp_path_factory.mktemp("loop"), fates=[*fates, early]))


@pytest.mark.parametrize(
    ("name", "expected", "n"),
    [
        ("dropped_tokens", 124.0, 4),
        (f"dropped_tokens[{STALE}]", 16.0, 2),
        ("dropped_tokens[rejected_stale: waited longer than max_age_s 1]", 8.0, 1),
        ("dropped_tokens[truncated]", 100.0, 1),
        ("dropped_share", 124 / (124 + 3 * 16), 16),
        ("stale_rejected_records", 3.0, 16),
        ("stale_rejected_tokens", 24.0, 16),
        ("rejected_length[mean]", 8.0, 3),
        ("rejected_length[p50]", 8.0, 3),
        ("trained_length[mean]", sum(LENGTHS) / 4, 12),
        ("trained_length[p50]", 4.0, 12),
        ("rejected_length_ratio[mean]", 2.0, 3),
        ("rejected_length_ratio[p50]", 2.0, 3),
        ("updates_per_batch", 1.0, 3),
    ],
)
def test_what_was_dropped(found: Figures, name: str, expected: float, n: int) -> None:
    assert found[name].value == pytest.approx(expected), found[name]
    assert found[name].n == n


def test_nothing_rejected_has_no_length(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path))
    assert found["dropped_tokens"].value == 0
    assert found["dropped_share"].value == 0
    for name in ("rejected_length[mean]", "rejected_length_ratio[p50]"):
        assert found[name].value is None
        assert "rejected as stale" in str(found[name].reason)


def test_a_smaller_learning_rate_shows(tmp_path: Path) -> None:
    rates = {step: {"learning_rate": rate} for step, rate in enumerate((1.0, 1.0, 0.5, 0.25))}
    constant = {"learning_rate": 1.0, "lr_schedule": "constant"}
    ledger = loop_cell(tmp_path, updates=rates)
    assert figures(ledger, task=TASK | constant)["learning_rate_share"].value == pytest.approx(1.75 / 3)
    assert figures(ledger)["learning_rate_share"].value is None
    silent = loop_cell(tmp_path / "silent")
    assert "tells its learning rate" in str(figures(silent, task=TASK | constant)["learning_rate_share"].reason)


def test_epochs_that_were_taken(tmp_path: Path) -> None:
    found = fake_figures(tmp_path, {"minibatches": 2, "inner_epochs": 2, "steps": 12, "warmup_steps": 4})
    assert found["updates_per_batch"].value == 4


def test_what_the_fake_loop_rejects(tmp_path: Path) -> None:
    """Every 4th completion is stale: those of 4 tokens; 3, 5 and 8 are trained on. The window has 8 of 10 batches."""
    found = fake_figures(tmp_path, stale_every=4)
    assert found["dropped_tokens[rejected_stale]"].value == 8 * 4 * 4
    assert found["rejected_length_ratio[mean]"].value == pytest.approx(4 / (16 / 3))


def test_lost_tokens_are_counted_apart_and_close_the_ledger(tmp_path: Path) -> None:
    """A generation of 9 tokens never arrived and a fault says so; one of 20 tokens died with its attempt; a batch of 16
    tokens was taken back by the restart."""
    streams = tmp_path / "streams"
    with LedgerWriter(streams, "main", "run/cell") as first:
        write_lawful(first)
        mark: dict[str, Any] = {"process": "main", "attempt": 0, "flushes": {}}
        first.flush()
        mark["flushes"] = dict.fromkeys(("rollouts", "trained", "updates", "fates", "publications"), 1)
        first.accept_batch([rollout(n, trace_id="gen-1", sample_id=f"q.b1.g{n}", group_id="q.b1") for n in range(4)])
        fates = [{"sample_id": f"q.b1.g{n}", "fate": "trained", "policy_tokens": 4, "t": 9} for n in range(4)]
        first.write("fates", fates)
        made = [("gen-1", 16), ("gen-2", 20), ("gen-0.r1", 9)]
        first.write("spans", [span("decode", 5, 6, trace_id=trace, output_tokens=n) for trace, n in made])
        lost = {"t": 7, "kind": "rollouts_lost", "cause": "system", "where": "gen-0.r1", "detail": "a worker died"}
        first.write("faults", [lost])
    with LedgerWriter(streams, "main~1", "run/cell") as second:
        note = {"mark": mark, "checkpoint": None, "step": 1, "policy_version": 1, "restored": {}, "t": 8}
        second.write("manifest", [{"key": "resumed:1", "value": json.dumps(note)}])
    compact(streams, tmp_path / "ledger", CELL_ID)
    values = measure_cell(read_cell(tmp_path / "ledger", CELL_ID), MeasureContext(TASK, 0))
    found = {value.name: value.value for value in values}
    assert found["lost_tokens"] == 45
    assert found["lost_tokens[taken back]"] == 16
    assert found["lost_tokens[never arrived]"] == 29
    assert found["token_closure_gap"] == 0
