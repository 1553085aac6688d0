"""`rlaxes track`: each of its ends is reached, with two revisions of the loop of known truth."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.execute import checkouts
from harness.report import build
from tests.execute.planted import planted_repository
from tests.execute.small_wheel import build_shelf

SHORT = ("task.steps=6", "task.warmup_steps=1", "null_test.pairs=0", "null_test.max_foreign=100")
"""The fake loop's clock is made up: what other processes use changes none of its times."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_repository(tmp_path_factory.mktemp("planted") / "repository")


@pytest.fixture(autouse=True)
def _own_cache(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkouts, "ROOT", repository)
    monkeypatch.setenv("RLAXES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "draw_figures", lambda model, folder: [])


def _track(output: Path, pin: str, candidate: str, *words: str, adapter: str = "fake") -> tuple[int, dict[str, Any]]:
    given = [f"adapter={adapter}", "--pin", pin, "--candidate", candidate, f"output={output}", *words, "--json"]
    done = CliRunner().invoke(app, ["track", *given])
    return done.exit_code, json.loads(done.stdout)


def _states(told: dict[str, Any]) -> dict[str, str]:
    return {f"{j['measure']}[{j['variant']}]" if j["variant"] else j["measure"]: j["state"] for j in told["judgements"]}


@pytest.mark.parametrize("candidate", ["base", "page", "comment"])
def test_0_nothing_runs_where_both_are_the_same(tmp_path: Path, candidate: str) -> None:
    code, told = _track(tmp_path, "base", candidate)
    assert code == told["exit"] == 0
    assert told["note"] == f"no change: the two are the same (hash {told['pin']['hash'][:12]})"
    assert told["run"] is None
    assert not list(tmp_path.glob("*/manifest.json"))


def test_1_a_slowdown_is_found_and_its_stage_named(tmp_path: Path) -> None:
    code, told = _track(tmp_path, "base", "slow", "repeats=3", *SHORT)
    assert code == told["exit"] == 1
    assert _states(told)["t_seq_part_seconds[rollout]"] == "worse"
    assert _states(told)["t_seq_part_seconds[train]"] == "no change"
    assert {stage["stage"] for stage in told["explained_by"]} == {"decode"}
    (rollout,) = [j for j in told["judgements"] if j["variant"] == "rollout"]
    assert rollout["effect"] == pytest.approx((1 + 4 + 20 * 1.05) / 25, rel=1e-4)
    assert (rollout["baseline"], rollout["adapter"]) == (told["pin"]["label"], told["candidate"]["label"])
    manifest = json.loads((Path(told["run"]) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["baseline"] == told["pin"]["label"]
    assert manifest["adapters"][told["candidate"]["label"]]["tracked"]["commit"] == told["candidate"]["commit"]


def test_2_noise_is_no_regression(tmp_path: Path) -> None:
    code, told = _track(tmp_path, "base", "slow", "repeats=3", "adapter.noise=0.5", *SHORT)
    assert code == told["exit"] == 2
    assert _states(told)["step_seconds"] == "cannot tell"


def test_3_a_hook_that_is_gone_is_named_and_nothing_is_measured(tmp_path: Path) -> None:
    code, told = _track(tmp_path, "base", "drifted", *SHORT)
    assert code == told["exit"] == 3
    label = told["candidate"]["label"]
    assert told["hook_drift"] == {label: ["hook drift: fake.loop:step (decode) is gone"]}
    assert [(j["state"], j["reason"]) for j in told["judgements"]] == [
        ("failed", f"{label}: hook drift: fake.loop:step (decode) is gone")
    ]
    assert not list(tmp_path.glob("*/manifest.json"))


def test_3_a_version_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", str(build_shelf(tmp_path / "shelf").folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    code, told = _track(tmp_path, "1.16.0", "1.15.0", adapter="trl")
    assert code == told["exit"] == 3
    assert "no lock of trl with trl==1.15.0" in told["error"]


def test_1_a_candidate_that_crashes_where_the_pin_does_not(tmp_path: Path) -> None:
    words = ["adapter=fake", "--pin", "base", "--candidate", "crashes", f"output={tmp_path}", "repeats=1", *SHORT]
    done = CliRunner().invoke(app, ["track", *words])
    assert done.exit_code == 1
    assert "failed" in done.stdout
    assert "ZeroDivisionError" in done.stdout
    assert done.stdout.splitlines()[-1] == "exit 1: the candidate failed where the pin did not"


@pytest.mark.parametrize(
    ("adapter", "candidate", "words", "says"),
    [
        ("fake", "yesterday", (), "'yesterday' is no revision of this checkout"),
        ("trl", "newest", (), "'newest' names no version of trl: write a release"),
        ("fakes", "base", (), "there is no such adapter"),
        ("skyrl", "base", (), "adapter skyrl is read and mapped, not run"),
        ("fake,reference", "base", (), "`track` takes one adapter in two versions"),
        ("fake", "base", ("fault=trainer_dies",), "for fault=... use `drill`"),
    ],
)
def test_4_what_cannot_be_asked(
    tmp_path: Path, adapter: str, candidate: str, words: tuple[str, ...], says: str
) -> None:
    pin = "1.16.0" if adapter == "trl" else "base"
    code, told = _track(tmp_path, pin, candidate, *words, adapter=adapter)
    assert code == told["exit"] == 4
    assert says in told["error"]


def test_4_a_version_is_missing() -> None:
    assert CliRunner().invoke(app, ["track", "adapter=fake", "--pin", "base"]).exit_code == 4
