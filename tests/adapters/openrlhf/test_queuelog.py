import hypothesis.strategies as st
from hypothesis import given, settings

from adapters.openrlhf.queuelog import QueueLog
from tests.adapters.openrlhf.probes import KeepingProbe


def test_a_batch_that_waited_is_seen_waiting() -> None:
    probe = KeepingProbe()
    log = QueueLog(probe)
    log.taken(10, 50, records=8, tokens=40)
    log.taken(30, 70, records=8, tokens=30)
    log.close()
    assert [(event["t"], event["event"], event["depth_records"], event["depth_tokens"]) for event in probe.events] == [
        (10, "put", 8, 40),
        (30, "put", 16, 70),
        (50, "get", 8, 30),
        (70, "get", 0, 0),
    ]


def test_an_event_is_written_once_none_can_come_before_it() -> None:
    probe = KeepingProbe()
    log = QueueLog(probe)
    log.taken(10, 50, records=1, tokens=1)
    assert [event["t"] for event in probe.events] == [10]
    log.taken(60, 61, records=1, tokens=1)
    assert [event["t"] for event in probe.events] == [10, 50, 60]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=20))
def test_the_depth_never_falls_below_zero_and_ends_there(moves: list[tuple[int, int]]) -> None:
    probe = KeepingProbe()
    log, put, got = QueueLog(probe), 0, 0
    for wait, stay in moves:
        put += wait
        got = max(got, put) + stay
        log.taken(put, got, records=1, tokens=3)
    log.close()
    times = [event["t"] for event in probe.events]
    assert times == sorted(times)
    assert all(event["depth_records"] >= 0 for event in probe.events)
    assert len(probe.events) == 2 * len(moves)
