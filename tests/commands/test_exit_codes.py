"""Each exit code, reached through the command or from judgements."""

import itertools

import pytest
from typer.testing import CliRunner

from harness import cli
from harness.cli import app
from harness.commands.exit_codes import exit_code
from harness.commands.words import (
    EXIT_CANNOT_TELL,
    EXIT_COULD_NOT_MEASURE,
    EXIT_FINE,
    EXIT_REGRESSION,
    EXIT_USAGE,
)
from harness.compare.judgement import STATES, JudgedState, Judgement

CODES = {
    "better": EXIT_FINE,
    "worse": EXIT_REGRESSION,
    "no change": EXIT_FINE,
    "cannot tell": EXIT_CANNOT_TELL,
    "not comparable": EXIT_COULD_NOT_MEASURE,
    "failed": EXIT_COULD_NOT_MEASURE,
    "not run": EXIT_COULD_NOT_MEASURE,
}
WORST_FIRST = (EXIT_REGRESSION, EXIT_COULD_NOT_MEASURE, EXIT_CANNOT_TELL, EXIT_FINE)


def judgement(state: JudgedState, cause: str | None = None, *, gating: bool = True) -> Judgement:
    place = ("colocated_sync", "free", "step_seconds", "", "s")
    return Judgement("new", "pin", *place, "lower", state, cause=cause, gating=gating)


def test_the_codes_are_those_that_scripts_rely_on() -> None:
    assert (EXIT_FINE, EXIT_REGRESSION, EXIT_CANNOT_TELL, EXIT_COULD_NOT_MEASURE, EXIT_USAGE) == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("state", STATES)
def test_every_state_alone(state: JudgedState) -> None:
    assert exit_code([judgement(state)]) == CODES[state]


def test_a_subject_that_failed_by_itself_is_a_regression() -> None:
    assert exit_code([judgement("failed", "system")]) == EXIT_REGRESSION
    assert exit_code([judgement("failed", "infrastructure")]) == EXIT_COULD_NOT_MEASURE


@pytest.mark.parametrize("both", list(itertools.combinations(STATES, 2)))
def test_of_two_states_the_one_that_no_rerun_mends_decides(both: tuple[JudgedState, JudgedState]) -> None:
    first, second = (judgement(state) for state in both)
    expected = min((CODES[state] for state in both), key=WORST_FIRST.index)
    assert exit_code([first, second]) == exit_code([second, first]) == expected


def test_a_gate_that_held_nothing_is_not_open() -> None:
    assert exit_code([]) == EXIT_COULD_NOT_MEASURE
    assert exit_code([judgement("better", gating=False)]) == EXIT_COULD_NOT_MEASURE


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-command"],
        ["compare", "--no-such-option"],
        ["check"],
        ["plan", "no-such-plan"],
        ["compare", "adapter=no_such_adapter"],
        ["compare", "repeats"],
        [],
    ],
    ids=" ".join,
)
def test_every_mistake_of_usage_ends_with_4_and_no_traceback(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == EXIT_USAGE, done.output
    assert "Traceback" not in done.output


def test_a_bug_of_ours_keeps_its_traceback_and_is_no_regression(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == EXIT_COULD_NOT_MEASURE
    assert "Traceback" in capsys.readouterr().err


def test_help_is_no_mistake() -> None:
    assert CliRunner().invoke(app, ["--help"]).exit_code == EXIT_FINE
