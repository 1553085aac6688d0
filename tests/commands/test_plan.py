"""`rlaxes plan`: what the documentation shows is what the commands print, and bad input is one line."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.commands.words import EXIT_USAGE
from tests.ingest.foreign import ingested

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plan.md"
LOG = PAGE.parents[1] / "tests" / "data" / "real_logs" / "verl" / "verl_grpo_npfloat_2025-12.log"
SHOWN = re.compile(r"^```\n\$ rlaxes (plan .*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["plan", *words])
    return done.exit_code, done.stdout


def shown() -> list[tuple[str, str]]:
    return [(command, output) for command, output in SHOWN.findall(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def log_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the page calls LOG_RUN: the run folder that `ingest` makes of a real log."""
    (told,) = ingested(tmp_path_factory.mktemp("runs"), LOG)
    return str(Path(told["ledger"]).parent)


@pytest.mark.parametrize(("command", "output"), shown(), ids=[command for command, _ in shown()])
def test_the_page_shows_what_the_command_prints(command: str, output: str, log_run: str) -> None:
    code, printed = run(*shlex.split(command.replace("LOG_RUN", log_run))[1:])
    assert code == 0
    assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in output.splitlines()]


@pytest.mark.parametrize(
    ("words", "figure", "value"),
    [
        (["memory", "model=llama-3-8b"], "kv_bytes_per_token", 131_072),
        (["memory", "model=llama-3-8b"], "kv_bytes", 32 * 2**30),
        (["memory", "model=llama-3-8b"], "state_bytes", 16 * 8_030_261_248),
        (["memory", "model=tiny"], "parameters", 322_176),
        (["memory", "model=smollm2"], "parameters", 134_515_008),
        (["pipeline", "G=90", "T=10"], "C_seq", 100),
        (["pipeline", "G=90", "T=10"], "C_pipe", 90),
        (["pipeline", "G=90", "T=10"], "speedup", 100 / 90),
        (["pipeline", "G=90", "T=10", "batches=10"], "T_n", 100 + 9 * 90),
        (["pipeline", "times=[4,4,5,5,5,6,6,20]"], "U", 55 / 160),
        (["pipeline", "rollout=310.1", "train=57.3", "sync=33.3"], "C_seq", 400.7),
        (["queue", "arrival=3932", "service=3238"], "growth", 694),
        (["checkpoint", "write=60", "between_failures=11124"], "I*", (2 * 60 * 11_124) ** 0.5),
    ],
)
def test_worked_numbers(words: list[str], figure: str, value: float) -> None:
    code, printed = run(*words, "--json")
    assert code == 0
    assert json.loads(printed)["figures"][figure] == pytest.approx(value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["memory"], "which model"),
        (["memory", "model=llama-3-8b", "rank=8"], "there is no setting rank; did you mean ranks?"),
        (["memory", "model=llama-3-8b", "tensor_parallel=3"], "cannot shard"),
        (["memory", "model=llama-3-8b", "utilisation=1.2"], "utilisation=1.2: a share is at most 1"),
        (["memory", "model=llama-3-8b", "tokens=-1"], "tokens=-1: it must not be negative"),
        (["memory", "model=llama-3-8b", "profile=adam"], "profile=adam: no such profile"),
        (["memory", "model=llama-3-8b", "layout=colocated"], "layout=colocated: no such layout"),
        (["pipeline"], "which times"),
        (["pipeline", "G=-1", "T=2"], "G=-1: it must not be negative"),
        (["pipeline", "G=.nan", "T=2"], "G=nan: it has to be finite"),
        (["pipeline", "G=1", "rollout=1"], "give G or its terms rollout, not both"),
        (["pipeline", "times=[]"], "times: give a list"),
        (["pipeline", "stages={a: {seconds: 1, after: [b]}}"], "stage a waits for b"),
        (["queue", "arrival=1", "service=0"], "service=0"),
        (["checkpoint", "write=60"], "between_failures"),
        (["pipeline", "run=tests/data/measured_cell", "cell=trl"], "cell=trl: measured_cell has no such cell"),
        (["pipeline", "run=tests/data/measured_cell", "G=3"], "there is no setting G"),
        (["memory", "run=nowhere"], "no run nowhere"),
        (["simulate", "seconds=-1"], "seconds=-1: it must not be negative"),
        (["simulate", "overlap=deep", "queue.tokens=null"], "unstable: 3,932 tokens/s arrive"),
        (["simulate", "response_tokens={name: lognormall, mean: 3}"], "did you mean lognormal?"),
        (["simulate", "rollout.kv_tokens=512"], "do not fit"),
    ],
)
def test_bad_input_is_one_line(words: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["plan", *words, "--json"])
    assert done.exit_code == EXIT_USAGE
    error = json.loads(done.stdout)["error"]
    assert says in error
    assert "\n" not in error


def test_an_unstable_queue_tells_its_growth() -> None:
    _, printed = run("queue", "arrival=3932", "service=3238", "--json")
    assert "grows by 694 a second without end" in json.loads(printed)["warnings"][0]


def test_what_does_not_fit_says_by_how_much() -> None:
    _, printed = run("memory", "model=llama-3-8b", "card=80e9", "--json")
    told = json.loads(printed)
    assert told["peak_phase"] == "rollout"
    assert "it does not fit: rollout needs 166.62 GiB" in told["warnings"][0]


def test_what_a_run_measured_stands_beside_the_formula_with_the_rest() -> None:
    run_words = ["run=tests/data/measured_cell", "--json"]
    told = json.loads(run("pipeline", *run_words, "devices=4", "G_devices=1", "T_devices=1")[1])
    figures, compared = told["figures"], told["compared"]
    assert compared["period"]["predicted"] == pytest.approx(figures["G"] + figures["T"])
    assert sum(figures[f"T_{term}"] for term in ("rollout", "reward")) == pytest.approx(figures["G"])
    for row in compared.values():
        assert row["unexplained"] == pytest.approx(row["measured"] - row["predicted"])
        assert 0 < row["unexplained"] < 0.25 * row["measured"]
    assert figures["rollout_devices"] == 2
    assert sum(told["critical_path"].values()) == pytest.approx(1)
    memory = json.loads(run("memory", *run_words)[1])
    assert memory["figures"]["parameters"] == 322_176
    assert memory["figures"]["kv_bytes"] == 128 * 9 * 2 * 2 * 64 * 4
    peak = memory["compared"]["peak"]
    assert peak["predicted"] == memory["figures"]["B(training)"] + memory["figures"]["B(rollout)"]
    assert peak["measured"] > peak["predicted"]
