"""What publications take, and mismatch right after them, by the length of the control completion."""

import math
from pathlib import Path
from typing import Any

import pytest

from harness.measure.values import Value
from tests.measure.loops import MS, at, figures, loop_cell

Figures = dict[str, Value]


def publication(step: int, ms: float, seconds: float, number: int, **fields: Any) -> dict[str, Any]:
    row = {"published_version": number, "policy_version": step, "kind": "full", "replicas": 2, "acknowledged": 2}
    times = {"t_start": at(step, ms), "t_end": at(step, ms) + int(seconds * 1000) * MS}
    return row | times | {"bytes": 4000, "ok": True} | fields


def control(tokens: int, gap: float | None, replica: int = 0) -> dict[str, Any]:
    engine = [-0.5] * tokens
    trainer = [-0.5 + gap if gap is not None else None] * tokens
    row = {"published_version": 0, "policy_version": 0, "replica": replica, "tokens": tokens, "t": at(0, 0)}
    return row | {"engine_logprobs": engine, "trainer_logprobs": trainer}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """Of the loop's own publications those before steps 2 and 3 begin in the window, each 5 ms and 4,000 bytes."""
    more = [
        publication(2, 50, 0.020, 10, bytes=10_000),
        publication(2, 80, 0.500, 11, ok=False, bytes=10_000, detail="replica 1: digest"),
    ]
    controls = [control(4, 0.25), control(4, 0.25, replica=1), control(16, -0.5), control(16, None)]
    return figures(loop_cell(tmp_path_factory.mktemp("loop"), publications=more, controls=controls))


@pytest.mark.parametrize(
    ("name", "expected", "n"),
    [
        ("publication_seconds_p50", 0.005, 3),
        ("publication_seconds_max", 0.020, 3),
        ("publication_bytes", 6000.0, 3),
        ("publications_refused", 1.0, 6),
        ("control_mismatch_mean", (8 * 0.25 + 16 * 0.5) / 24, 24),
        ("control_mismatch_mean[1-8]", 0.25, 8),
        ("control_mismatch_mean[9-16]", 0.5, 16),
        ("control_mismatch_max", 0.5, 24),
        ("control_mismatch_max[1-8]", 0.25, 8),
        ("control_mismatch_k1[1-8]", -0.25, 8),
        ("control_mismatch_k1[9-16]", 0.5, 16),
        ("control_mismatch_k3[1-8]", math.expm1(0.25) - 0.25, 8),
        ("control_mismatch_k3[9-16]", math.expm1(-0.5) + 0.5, 16),
    ],
)
def test_publications(found: Figures, name: str, expected: float, n: int) -> None:
    assert found[name].value == pytest.approx(expected, rel=1e-6), found[name]
    assert found[name].n == n


def test_mismatch_of_consumed_records_is_another_figure(found: Figures) -> None:
    assert found["mismatch_max"].value == 0


def test_what_was_not_checked_is_not_zero(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path))
    assert found["control_mismatch_mean"].value is None
    assert "no control completion" in str(found["control_mismatch_mean"].reason)
    assert found["publications_refused"].value == 0
