"""The queue's figures, on a hand-made loop whose queue is written down event by event.

The window runs from `at(1, 0)` to `at(3, 95)`: 295 ms. In it 2 groups of 10 and 30 tokens come in and one leaves.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contract import LedgerWriter, compact, read_cell
from harness.contract.schema import QUEUE_EVENTS
from harness.measure.api import MeasureContext, series_cell
from harness.measure.columns import Array
from harness.measure.queue import QueueLog, _limits, _until, read_queue
from harness.measure.values import Value
from harness.measure.window import Window
from tests.ledgers import CELL_ID, span
from tests.measure.loops import TASK, at, figures, loop_cell

Figures = dict[str, Value]
WINDOW = 0.295


def event(t: int, kind: str, records: int, tokens: int, depth: tuple[int, int], reason: str | None = None) -> Any:
    row = {"t": t, "event": kind, "records": records, "tokens": tokens, "reason": reason}
    return row | {"depth_records": depth[0], "depth_tokens": depth[1], "depth_bytes": 9 * depth[1]}


EVENTS = [
    event(at(0, 50), "put", 1, 5, (1, 5)),
    event(at(1, 20), "put", 2, 10, (3, 15)),
    event(at(1, 40), "close", 0, 0, (3, 15), "records"),
    event(at(1, 60), "put", 4, 30, (7, 45)),
    event(at(2, 0), "close", 0, 0, (7, 45), "lag_bound"),
    event(at(2, 20), "get", 3, 15, (4, 30)),
    event(at(2, 30), "open", 0, 0, (4, 30)),
    event(at(3, 0), "drop", 1, 6, (3, 24), "rejected_stale: lag 3, max_lag 2"),
]
WAITS = [
    span("queue_wait", at(1, 95), at(2, 0), trace_id="queue", step=2),
    span("queue_wait", at(2, 95), at(3, 0), trace_id="queue", step=3),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    return figures(loop_cell(tmp_path_factory.mktemp("loop"), queue=EVENTS, spans=WAITS))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("queue_arrival_tokens_per_second", 40 / WINDOW),
        ("queue_service_tokens_per_second", 15 / (WINDOW - 0.010)),
        ("queue_load", (40 / WINDOW) / (15 / (WINDOW - 0.010))),
        # 20 ms at 5 tokens, 40 at 15, 60 at 45, 80 at 30, 95 at 24
        ("queue_depth_p50[tokens]", 24.0),
        ("queue_depth_p95[tokens]", 45.0),
        ("queue_depth_max[tokens]", 45.0),
        ("queue_depth_max[records]", 7.0),
        ("queue_depth_max[bytes]", 9 * 45.0),
        ("queue_depth_p50[records]", 3.0),
        ("queue_overshoot[tokens]", 30.0),
        ("queue_overshoot[records]", 4.0),
        ("backpressure_share", 0.090 / WINDOW),
        ("backpressure_share[records]", 0.060 / WINDOW),
        ("backpressure_share[lag_bound]", 0.030 / WINDOW),
        ("starving_share", 0.010 / WINDOW),
    ],
)
def test_the_queue(found: Figures, name: str, expected: float) -> None:
    assert found[name].value == pytest.approx(expected), found[name]


def test_counts_stand_beside_them(found: Figures) -> None:
    assert found["queue_arrival_tokens_per_second"].n == 6
    assert found["queue_overshoot[tokens]"].n == 2
    assert found["backpressure_share[records]"].n == 1
    assert found["queue_depth_p50[tokens]"].unit == "tokens"


def test_where_there_is_no_queue_it_is_absent(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path, notes={"absent_stages": {"queue_wait": "batches wait in no queue"}}))
    names = (
        "queue_load",
        "queue_depth_p50[tokens]",
        "queue_overshoot[records]",
        "backpressure_share",
        "starving_share",
    )
    for name in names:
        assert found[name].absent
        assert found[name].reason == "batches wait in no queue"


def test_a_queue_that_nobody_wrote_down_is_not_measured(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path))
    assert not found["queue_load"].absent
    assert "no event" in str(found["queue_load"].reason)
    assert "not measured" in str(found["starving_share"].reason)


def test_without_waiting_spans_there_is_no_service_rate(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path, queue=EVENTS))
    assert found["queue_service_tokens_per_second"].value is None
    assert found["queue_arrival_tokens_per_second"].value == pytest.approx(40 / WINDOW)


def test_a_restart_empties_the_queue_and_what_it_puts_back_is_no_arrival(tmp_path: Path) -> None:
    streams = tmp_path / "streams"
    with LedgerWriter(streams, "main", "r") as first:
        first.write("queue", [event(10, "put", 2, 8, (2, 8)), event(20, "close", 0, 0, (2, 8), "tokens")])
    with LedgerWriter(streams, "main~1", "r") as second:
        second.write("queue", [event(100, "put", 1, 3, (1, 3), "restored"), event(110, "put", 1, 4, (2, 7))])
    compact(streams, tmp_path / "ledger", CELL_ID)
    log = read_queue(read_cell(tmp_path / "ledger", CELL_ID))
    assert log.arrivals().tolist() == [True, False, False, True]
    assert [log.reasons[code] if code >= 0 else None for code in log.limit] == [None, "tokens", None, None]
    assert log.until.tolist()[:3] == [20, 20, 110]


STEPS = st.lists(st.tuples(st.integers(1, 20), st.sampled_from(["put", "get", "close", "open"])), min_size=1)


@given(STEPS)
def test_time_under_each_state_adds_up_to_the_window(steps: list[tuple[int, str]]) -> None:
    t = np.cumsum([gap for gap, _ in steps])
    names = np.array([QUEUE_EVENTS.index(kind) for _, kind in steps], np.int8)
    zeros: Array = np.zeros(len(t), np.int64)
    log = QueueLog(t, names, zeros, zeros, {}, zeros, ["x"], _limits(names, zeros, zeros), _until(t, zeros))
    window = Window(0, int(t[-1]) + 7, 0)
    assert log.seconds(window).sum() + log.seconds_before(window) == pytest.approx(window.seconds)


def test_series_of_depth_and_admission(tmp_path: Path) -> None:
    ledger = loop_cell(tmp_path, queue=EVENTS, spans=WAITS)
    queue = series_cell(ledger, MeasureContext(TASK, 1))["queue"]
    assert queue["tokens"] == [5, 15, 15, 45, 45, 30, 30, 24]
    assert queue["records"][-1] == 3
    assert queue["t"] == pytest.approx([-0.05, 0.02, 0.04, 0.06, 0.1, 0.12, 0.13, 0.2])
    closed = list(zip(queue["closed_from"], queue["closed_to"], queue["limit"], strict=True))
    assert closed == [
        (pytest.approx(0.04), pytest.approx(0.1), "records"),
        (pytest.approx(0.1), pytest.approx(0.13), "lag_bound"),
    ]
