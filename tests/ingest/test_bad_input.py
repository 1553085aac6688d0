"""What is no log of a run: one clear line and exit code 4, or a warning where other files are fine."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.foreign import command, ingested, rows_of, verl_log

BAD = {
    "rubbish.log": bytes(range(256)) * 4000,
    "nginx.log": b'10.0.0.1 - - [30/Nov/2026:01:02:03 +0000] "GET / HTTP/1.1" 200 612\n' * 500,
    "empty.log": b"",
    "blank.log": b"\n \n\t\n",
    "line.log": b"x" * (40 << 20),
    "latin.log": b"\xff\xfe\xe9t\xe9 \x80\n" * 1000,
    "cut.log": "naïve Läufe – 数字".encode()[:-1],
    "broken.json": b'{"log_history": [{"loss": ',
}


@pytest.mark.parametrize("name", BAD)
def test_one_clear_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BAD[name])
    code, printed, said = command("ingest", path, "--output", tmp_path / "runs")
    assert (code, printed) == (4, "")
    assert said.replace("\n", "").startswith("rlaxes: nothing to ingest: ")
    assert "Traceback" not in said
    assert not (tmp_path / "runs").exists()


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "not_there"):
        code, _, said = command("ingest", path, "--output", tmp_path / "runs")
        assert code == 4
        assert "Traceback" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(verl_log([1]))
    path.chmod(0)
    code, _, said = command("ingest", path, "--output", tmp_path / "runs")
    assert (code, "cannot be read" in said) == (4, True)


def test_a_file_of_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("locked.log", "run.log"):
        (folder / name).write_text(verl_log([1, 2]))
    opened = Path.open

    def refused(path: Path, *words: Any, **named: Any) -> Any:
        if path.name == "locked.log":
            raise PermissionError(13, "Permission denied")
        return opened(path, *words, **named)

    monkeypatch.setattr(Path, "open", refused)
    (told,) = ingested(tmp_path / "runs", folder)
    assert told["steps"] == 2
    assert [warning.partition(": ")[2] for warning in told["warnings"]] == [
        "cannot be read: [Errno 13] Permission denied"
    ]


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(verl_log([1]))
    code, _, said = command("ingest", log, "--output", log)
    assert code == 4
    assert "choose another folder with --output" in said.replace("\n", " ")


def test_a_good_file_among_bad_ones(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("rubbish.log", "nginx.log", "empty.log"):
        (folder / name).write_bytes(BAD[name])
    (folder / "run.log").write_text(verl_log(range(1, 4)))
    (told,) = ingested(tmp_path / "runs", folder)
    assert told["steps"] == 3
    assert len(told["warnings"]) == 3


@pytest.mark.parametrize("tail", [b"step:4 - actor/pg_loss:0.1", b"step:4 - actor/pg_lo", b"\xe6\x95", b"\x00\xff"])
def test_a_log_that_was_cut(tmp_path: Path, tail: bytes) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(verl_log(range(1, 4)).encode() + tail)
    (told,) = ingested(tmp_path / "runs", log)
    assert [step for step, _ in rows_of(told)["actor/pg_loss"]] == [1, 2, 3]


def test_numbers_beyond_all_bounds(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    huge = "9" * 5000
    log.write_text(verl_log([1, 2]) + f"step:{huge} - actor/pg_loss:0.5\nstep:3 - actor/pg_loss:nan - actor/lr:1e999\n")
    (told,) = ingested(tmp_path / "runs", log)
    assert told["steps"] == 3
    last = {one["native_key"]: one["last"] for one in told["series"]}
    assert (last["actor/pg_loss"], last["actor/lr"]) == ("NaN", "Infinity")
    assert command("report", Path(told["ledger"]).parent)[0] == 0


def test_markup_in_a_key_is_text_in_the_report(tmp_path: Path) -> None:
    state = tmp_path / "trainer_state.json"
    hostile = "</td><script>alert(1)</script>|`"
    state.write_text(json.dumps({"log_history": [{"loss": 0.5, "reward_std": 0.1, "step": 1, hostile: 1.0}]}))
    (told,) = ingested(tmp_path / "runs", state)
    assert hostile in told["unknown_keys"]
    run = Path(told["ledger"]).parent
    assert command("report", run)[0] == 0
    assert "<script>" not in (run / "report.html").read_text()
    assert "<script>" not in (run / "report.md").read_text()
