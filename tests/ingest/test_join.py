"""Several files of a run, resumed runs, counters: each number once, and nothing lost silently."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.attempts import Attempts
from harness.ingest.reading import Block
from harness.ingest.series import SeriesBook
from tests.ingest.foreign import ingested, manifest_of, rows_of, verl_log

ROLE = "replaced by a later attempt: "


def write(folder: Path, **logs: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in logs.items():
        (folder / f"{name}.log").write_text(text)
    return folder


def steps_of(told: dict[str, object], key: str = "actor/pg_loss") -> list[int | None]:
    return [step for step, _ in rows_of(told).get(key, [])]


def test_one_run_in_three_files_counts_once(tmp_path: Path) -> None:
    whole = verl_log(range(1, 31))
    rounded = "".join(f"step:{s} - actor/pg_loss:{0.1234567 / s:.3f} - actor/lr:0.5\n" for s in range(1, 31))
    logs = write(tmp_path / "logs", console=whole, part=verl_log(range(1, 21)), rounded=rounded)
    (told,) = ingested(tmp_path / "runs", logs)
    assert (told["steps"], len(told["files"])) == (30, 3)
    assert rows_of(told)["actor/pg_loss"] == [(s, 0.1234567 / s) for s in range(1, 31)]
    assert steps_of(told, "actor/lr") == list(range(1, 31))
    assert manifest_of(told)["seams"] == []


def test_two_runs_in_a_folder_stay_two(tmp_path: Path) -> None:
    logs = write(tmp_path / "logs", one=verl_log(range(1, 31)), two=verl_log(range(1, 31), 0.3))
    assert [run["steps"] for run in ingested(tmp_path / "runs", logs)] == [30, 30]


def test_a_resumed_run_in_one_file(tmp_path: Path) -> None:
    logs = write(tmp_path / "logs", run=verl_log(range(1, 11)) + "noise\n" + verl_log(range(8, 16), 0.3))
    (told,) = ingested(tmp_path / "runs", logs)
    assert steps_of(told) == list(range(1, 16))
    assert dict(rows_of(told)["actor/pg_loss"])[8] == pytest.approx(0.1234567 / 8 + 0.3)
    assert [step for step, _ in rows_of(told)[ROLE + "actor/pg_loss"]] == [8, 9, 10]
    (seam,) = manifest_of(told)["seams"]
    assert (seam["line"], seam["step"], seam["after"], seam["repeated_steps"]) == (12, 8, 10, 3)


@pytest.mark.parametrize("end", [41, 61])
def test_a_resumed_run_in_two_files(tmp_path: Path, end: int) -> None:
    logs = write(tmp_path / "logs", b_second=verl_log(range(21, end), 0.3), a_first=verl_log(range(1, 26)))
    (told,) = ingested(tmp_path / "runs", logs)
    assert steps_of(told) == list(range(1, end))
    assert dict(rows_of(told)["actor/pg_loss"])[21] == pytest.approx(0.1234567 / 21 + 0.3)
    (seam,) = manifest_of(told)["seams"]
    assert seam["file"].endswith("b_second.log")
    assert (seam["step"], seam["after"], seam["repeated_steps"]) == (21, 25, 5)


@pytest.mark.parametrize("restored", [True, False])
def test_a_counter_is_differenced_and_never_negative(tmp_path: Path, restored: bool) -> None:
    def entry(step: int, tokens: int, loss: float) -> dict[str, float]:
        return {"step": step, "num_tokens": tokens, "loss": loss, "reward_std": 0.1 + loss, "reward": loss / 3}

    first = [entry(step, 100 * step, 0.1 / step) for step in range(1, 6)]
    begin = 300 if restored else 0
    again = [entry(step, begin + 110 * (step - 3), 0.2 / step) for step in range(4, 8)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": [*first, *again]}))
    (told,) = ingested(tmp_path / "runs", tmp_path / "trainer_state.json")
    grown = dict(rows_of(told)["growth since the entry before: num_tokens"])
    rest = {5: 110.0, 6: 110.0, 7: 110.0}
    assert grown == {2: 100.0, 3: 100.0} | ({4: 110.0} if restored else {}) | rest
    assert dict(rows_of(told)["num_tokens"])[4] == begin + 110


def test_a_console_and_a_file_of_other_numbers(tmp_path: Path) -> None:
    logs = write(tmp_path / "logs", console=verl_log(range(1, 9)))
    lines = [json.dumps({"step": step, "actor/loss": 0.1 / step, "critic/score/mean": 0.5}) for step in range(1, 9)]
    (logs / "metrics.jsonl").write_text("\n".join(lines))
    (told,) = ingested(tmp_path / "runs", logs)
    assert told["steps"] == 8
    assert {"actor/pg_loss", "actor/loss"} <= {one["native_key"] for one in told["series"]}


def attempts(steps: list[int], keys: list[str]) -> list[int]:
    book, found = SeriesBook(), Attempts()
    blocks = [
        Block(step, line, "training", {key: 1.0}) for line, (step, key) in enumerate(zip(steps, keys, strict=True))
    ]
    return [found.number_of(block, book.numbers(block)) for block in blocks]


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abc")), max_size=30))
@settings(max_examples=60, deadline=None)
def test_no_attempt_gives_a_number_twice(entries: list[tuple[int, str]]) -> None:
    found = attempts([step for step, _ in entries], [key for _, key in entries])
    assert found == sorted(found)
    cells = list(zip(found, entries, strict=True))
    assert len(set(cells)) == len(cells)
    if [step for step, _ in entries] == sorted({step for step, _ in entries}):
        assert set(found) <= {0}


@given(st.integers(0, 400))
@settings(max_examples=12, deadline=None)
def test_a_cut_log_is_a_prefix_of_the_whole(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = verl_log(range(1, 11)).encode()
    (folder / "run.log").write_bytes(whole)
    (folder / "cut.log").write_bytes(whole[: len(whole) - cut])
    (told,) = ingested(folder / "runs", folder / "run.log", folder / "cut.log")
    assert rows_of(told)["actor/pg_loss"] == [(s, 0.1234567 / s) for s in range(1, 11)]
