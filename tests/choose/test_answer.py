"""The states, whose word goes first, what is stale, and that measured and declared both stand where they differ."""

import datetime

import pytest

from harness.choose.evidence import Clock, Lag
from tests.choose.made import answer, axis, choice, finding, framework

ENGINE = "rollout_engine: {must: vllm}"
LAG = "allowed_lag: {must: 2}"


def test_met_and_not_met_by_declaration() -> None:
    one = framework(rollout_engine=axis(["vllm", "sglang"]))
    met, missing = answer(ENGINE, one), answer("rollout_engine: {must: dynamo}", one)
    assert (met.state, met.grade, met.stale) == ("met", "declared", False)
    assert met.evidence[0].says == "lists vllm: says vllm"
    assert (missing.state, missing.grade) == ("not met", "declared")
    assert missing.evidence[0].says.startswith("lists vllm, sglang, not what is asked")


def test_unknown_where_nothing_is_declared_or_nobody_looked() -> None:
    assert answer(ENGINE, framework()).state == "unknown"
    unread = framework(rollout_engine=axis(["sglang"], unread=["vllm"]))
    found = answer(ENGINE, unread)
    assert (found.state, found.grade, found.evidence) == ("unknown", None, ())
    assert answer("rollout_engine: {must: sglang or vllm}", unread).state == "met"
    assert found.opening is not None


def test_any_of_the_alternatives_meets() -> None:
    one = framework(abstraction=axis(["spmd"]))
    assert answer("abstraction: {must: trainer_class or spmd}", one).state == "met"
    assert answer("abstraction: {must: trainer_class}", one).state == "not met"


def test_a_measurement_goes_before_a_declaration_and_needs_no_opening() -> None:
    one = framework("one", finding("rollout_engine", ("vllm",)), rollout_engine=axis(["vllm"]))
    found = answer(ENGINE, one)
    assert (found.state, found.grade, found.opening) == ("met", "measured here", None)
    assert [piece.grade for piece in found.evidence] == ["measured here", "declared"]


def test_where_they_differ_both_stand() -> None:
    one = framework("one", finding("rollout_engine", ("vllm",)), rollout_engine=axis(["sglang"]))
    found = answer(ENGINE, one)
    assert (found.state, found.grade) == ("differs", "measured here")
    assert [(piece.grade, piece.meets) for piece in found.evidence] == [("measured here", True), ("declared", False)]
    assert found.opening


def test_a_ledger_that_shows_one_of_several_shows_none_of_them_by_itself() -> None:
    seen = finding("synchrony", ("one_step_off", "asynchronous", "fully_asynchronous"))
    assert answer("synchrony: {must: asynchronous}", framework("one", seen)).state == "met"
    assert answer("synchrony: {must: fully_asynchronous}", framework("one", seen)).state == "unknown"


def test_a_drill_that_lost_an_item_speaks_against_it() -> None:
    lost = finding("recovery", ("keeps_rng",), holds=False)
    one = framework("one", lost, recovery=axis(["keeps_rng"]))
    assert answer("recovery: {must: rng}", one).state == "differs"
    assert answer("recovery: {must: rng}", framework("one", lost)).state == "not met"
    assert answer("recovery: {must: optimizer}", framework("one", lost)).state == "unknown"


@pytest.mark.parametrize(
    ("lag", "state"),
    [
        (Lag(2, 2, asynchronous=True), "met"),
        (Lag(3, 2, asynchronous=True), "not met"),
        (Lag(3, 4, asynchronous=True), "unknown"),
        (Lag(3, None, asynchronous=True), "unknown"),
        (Lag(0, 0, asynchronous=False), "unknown"),
    ],
)
def test_a_lag_beyond_the_allowed_speaks_against_it_only_under_a_bound_no_wider(lag: Lag, state: str) -> None:
    assert answer(LAG, framework("one", finding("lag_bound", lag=lag))).state == state


def test_no_lag_is_shown_by_a_synchronous_layout() -> None:
    zero = "allowed_lag: {must: 0}"
    assert answer(zero, framework("one", finding("lag_bound", lag=Lag(0, 0, asynchronous=False)))).state == "met"
    assert answer(zero, framework("one", finding("lag_bound", lag=Lag(0, 2, asynchronous=True)))).state == "unknown"
    declared = framework(lag_bound=axis(["own_updates"]), synchrony=axis(["synchronous"]))
    assert answer(zero, declared).state == "met"
    assert answer(zero, framework(lag_bound=axis(["drops"]), synchrony=axis(["fully_asynchronous"]))).state == "not met"


@pytest.mark.parametrize(
    ("values", "state"),
    [
        (["own_updates", "drops"], "met"),
        (["own_updates"], "met"),
        (["unbounded"], "not met"),
        (["own_updates", "queue_size"], "unknown"),
    ],
)
def test_a_declared_bound(values: list[str], state: str) -> None:
    assert answer(LAG, framework(lag_bound=axis(values))).state == state


def test_another_version_an_older_reading_and_great_age_are_stale() -> None:
    measured = framework("one", finding("rollout_engine", ("vllm",), version="1.9"))
    found = answer(ENGINE, measured)
    assert found.stale
    assert found.evidence[0].stale == "it speaks of 1.9, the pin is 2.0"
    assert found.opening is not None
    logs = finding("rollout_engine", ("vllm",), version=None, grade="replayed from logs")
    assert answer(ENGINE, framework("one", logs)).evidence[0].stale == "it tells no version, the pin is 2.0"
    both = answer(ENGINE, framework("one", logs, rollout_engine=axis(["vllm"])))
    assert (both.grade, both.stale) == ("declared", False)
    old = answer(ENGINE, framework(rollout_engine=axis(["vllm"], date="2026-10-31")))
    assert old.evidence[0].stale == "it was read on 2026-10-31, the pin is of 2026-11-01"
    later = Clock(datetime.date(2027, 11, 30), 180)
    assert (
        answer(ENGINE, framework(rollout_engine=axis(["vllm"])), later).evidence[0].stale
        == "it is 366 days old, more than 180"
    )


def test_of_one_grade_the_newest_stands() -> None:
    runs = [finding("rollout_engine", ("vllm",), date=f"2026-11-{day}", source=f"run {day}") for day in (28, 30, 29)]
    assert [piece.source for piece in answer(ENGINE, framework("one", *runs)).evidence] == ["run 30"]


def test_a_newer_run_of_another_version_hides_none_of_the_pin() -> None:
    pin = finding("rollout_engine", ("vllm",), date="2026-11-28", source="pin")
    other = finding("rollout_engine", ("vllm",), date="2026-11-30", source="candidate", version="2.1")
    found = answer(ENGINE, framework("one", other, pin))
    assert [piece.source for piece in found.evidence] == ["pin"]
    assert found.opening is None


def test_order_is_that_of_names_and_nothing_is_counted() -> None:
    found = choice(f"{ENGINE}, turns: {{wish: tools}}", framework("b", rollout_engine=axis(["vllm"])), framework("a"))
    assert [one.framework for one in found.answers] == ["a", "b", "a", "b"]
    assert [one.framework for one in found.noted] == ["a", "a", "b", "b"]
    assert [found.number(one) for one in found.answers] == [1, 3, 2, 4]
    told = found.as_dict()
    assert not {"score", "rank", "best", "total"} & {key for answer in told["answers"] for key in (*told, *answer)}
