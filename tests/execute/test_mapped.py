"""Frameworks without a driver: read and mapped, not run, which each command says in a line."""

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.commands.words import EXIT_USAGE
from harness.contract.axes import AXES
from harness.errors import UserError
from harness.execute.adapter import MAPPED, find_adapters
from harness.execute.compose import compose_choices
from harness.execute.doctor import diagnose
from harness.execute.locks import lock_jobs

FRAMEWORKS = ("areal", "nemo_rl", "openrlhf", "prime_rl", "skyrl", "trl", "verl")
NOT_RUN = ("areal", "nemo_rl", "prime_rl", "skyrl")


def test_the_rest_of_rlaxes_runs_only_what_has_a_driver() -> None:
    adapters = find_adapters()
    assert {name for name, adapter in adapters.items() if not adapter.runs} == set(NOT_RUN)
    assert not {job.target.parts[-3] for job in lock_jobs()} & set(NOT_RUN)
    for name in NOT_RUN:
        assert not adapters[name].spec["layouts"]
        assert not adapters[name].spec["profiles"]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_declares_every_axis(name: str) -> None:
    assert find_adapters()[name].spec["axes"].keys() == AXES.keys()


@pytest.mark.parametrize("words", ["compare adapter=nemo_rl", "env sync adapter=skyrl,trl", "env lock areal"])
def test_a_command_that_would_run_it_says_so(words: str) -> None:
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == EXIT_USAGE
    assert f"is {MAPPED}" in " ".join(done.stderr.split())
    assert "Traceback" not in done.output


def test_it_is_not_offered_where_a_name_is_misspelt() -> None:
    with pytest.raises(UserError) as error:
        compose_choices(["adapter=nemo"])
    assert "nemo_rl" not in str(error.value)


def test_the_doctor_says_so_and_finds_nothing_amiss() -> None:
    checks = [check for check in diagnose("prime_rl", "cpu") if check.name.startswith("prime_rl")]
    assert [(check.name, check.ok, check.detail) for check in checks] == [("prime_rl: driver", True, MAPPED)]
