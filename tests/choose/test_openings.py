"""What would close an unknown: commands that rlaxes takes, or the reason why there is none."""

import shlex

import pytest

from harness.choose.asked import Requirement
from harness.choose.evidence import Framework
from harness.choose.openings import NO_LEDGER, NOT_DRIVEN, NOT_RUN, opening_of
from harness.choose.topics import LAG, TOPICS
from harness.contract.axes import AXES
from harness.execute.adapter import find_adapters
from harness.execute.compose import compose_choices
from tests.choose.made import answer, choice, framework

FRAMEWORKS = [
    Framework(name, adapter.spec, adapter.runs, []) for name, adapter in find_adapters().items() if adapter.built_in
]


def _every_requirement() -> list[Requirement]:
    words = [Requirement(name, (word,), "must") for name, topic in TOPICS.items() for word in topic.words]
    return [*words, Requirement(LAG, (), "must", 0), Requirement(LAG, (), "must", 3)]


@pytest.mark.parametrize("one", FRAMEWORKS, ids=lambda one: one.name)
def test_every_command_is_one_that_rlaxes_takes(one: Framework) -> None:
    openings = {opening_of(one, requirement) for requirement in _every_requirement()}
    commands = {opening.command for opening in openings if opening.command}
    assert commands
    for command in commands:
        program, verb, *words = shlex.split(command)
        assert program == "rlaxes"
        if one.runs:
            assert verb in {"compare", "drill"}
            (chosen,) = compose_choices(words)
            assert chosen.config["adapter"]["name"] == one.name
        else:
            assert (verb, words[0]) == ("ingest", "LOG")


@pytest.mark.parametrize("one", FRAMEWORKS, ids=lambda one: one.name)
def test_what_asks_for_a_value_names_values_of_the_axis_that_it_declares(one: Framework) -> None:
    for axis, given in (one.spec.get("asked_by") or {}).items():
        assert axis in AXES
        assert given.keys() <= set(one.spec["axes"][axis]["values"])


def test_the_reasons_why_there_is_no_command() -> None:
    assert answer("nodes: {must: many}", framework()).opening.why == NO_LEDGER  # type: ignore[union-attr]
    assert answer("weights: {must: lora}", framework()).opening.why == NOT_DRIVEN  # type: ignore[union-attr]
    assert answer("weights: {must: lora}", framework(runs=False)).opening.why == NOT_RUN  # type: ignore[union-attr]


def test_a_bound_is_asked_for_and_a_dead_worker_is_another_fault() -> None:
    (lag,) = choice("allowed_lag: {must: 3}", framework()).open
    assert lag.opening.command == "rlaxes compare adapter=one layout=disaggregated_async layout.lag_bound=3"
    (zero,) = choice("allowed_lag: {must: 0}", framework()).open
    assert zero.opening.command == "rlaxes compare adapter=one layout=colocated_sync"
    (drill,) = choice("recovery: {must: replaces_workers}", framework()).open
    assert drill.opening.command == "rlaxes drill adapter=one fault=worker_dies"


def test_one_command_closes_several_and_commands_come_first() -> None:
    text = "recovery: {must: [optimizer, rng, queue]}, rollout_engine: {indifferent: vllm}"
    drill, rest = choice(text, framework()).open
    assert [one.requirement.asked for one in drill.about] == ["optimizer", "rng"]
    assert [one.requirement.asked for one in rest.about] == ["queue"]
    assert rest.opening.command is None
