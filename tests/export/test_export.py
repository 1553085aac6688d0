import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.commands.words import EXIT_USAGE
from harness.export.export import FORMATS, read_report
from tests.report.runs import cell, make_run

PHASES = {"X": {"ts", "dur", "pid", "tid", "name"}, "M": {"pid", "name", "args"}, "C": {"ts", "pid", "name", "args"}}
PHASES |= {end: {"ts", "pid", "tid", "name", "id", "cat"} for end in "sf"}
"""What the Trace Event Format asks of each kind of event that we write."""


def _export(*words: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["export", *words, "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_each_format_has_a_folder_and_each_run_its_own_in_it(fake_run: Path, tmp_path: Path) -> None:
    words = ("--to", "csv", "--to", "latex", "--to", "tensorboard", "--to", "perfetto", "--output", str(tmp_path))
    code, said = _export(str(fake_run), *words)
    assert code == 0
    assert said["exported"] == {name: str(tmp_path / name) for name in ("csv", "latex", "perfetto", "tensorboard")}
    for folder in said["exported"].values():
        assert [path.name for path in Path(folder).iterdir()] == [fake_run.name]


def test_what_is_there_is_not_overwritten(fake_run: Path, tmp_path: Path) -> None:
    words = (str(fake_run), "--to", "latex", "--output", str(tmp_path))
    assert _export(*words)[0] == 0
    before = (tmp_path / "latex" / fake_run.name / "headlines.tex").stat()
    code, said = _export(*words)
    assert (code, "is there already" in said["error"]) == (EXIT_USAGE, True)
    assert (tmp_path / "latex" / fake_run.name / "headlines.tex").stat() == before


def _trace(folder: Path, run: str, cell: str) -> list[dict[str, Any]]:
    content = json.loads((folder / "perfetto" / run / f"{cell}.perfetto.json").read_text(encoding="utf-8"))
    return list(content["traceEvents"])


def test_a_timeline_of_each_cell_that_ended_well_in_the_trace_event_format(fake_run: Path, tmp_path: Path) -> None:
    assert _export(str(fake_run), "--to", "perfetto", "--output", str(tmp_path))[0] == 0
    cells = [f"fake.colocated_sync.free.r{repeat}" for repeat in (0, 1)]
    written = {path.name for path in (tmp_path / "perfetto" / fake_run.name).iterdir()}
    assert written == {f"{name}.perfetto.json" for name in cells}
    for name in cells:
        events = _trace(tmp_path, fake_run.name, name)
        assert {event["name"] for event in events if event["ph"] == "X"} >= {"decode", "forward_backward"}
        for event in events:
            assert PHASES[event["ph"]] <= set(event), event
            assert event["ph"] == "M" or event["ts"] >= 0
            assert event.get("dur", 0) >= 0
        starts, ends = ({e["id"] for e in events if e["ph"] == end} for end in "sf")
        assert starts == ends


def test_one_cell(fake_run: Path, tmp_path: Path) -> None:
    one = "fake.colocated_sync.free.r1"
    assert _export(str(fake_run), "--to", "perfetto", "--cell", one, "--output", str(tmp_path))[0] == 0
    assert [path.name for path in (tmp_path / "perfetto" / fake_run.name).iterdir()] == [f"{one}.perfetto.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "excel"], f"no format excel; there are {', '.join(FORMATS)}"),
        (["--to", "perfetto", "--cell", "nothing"], "no cell nothing that ended well; there are fake."),
        (["--to", "csv", "--cell", "nothing"], "add --to perfetto"),
    ],
)
def test_a_mistake_is_one_line(fake_run: Path, tmp_path: Path, words: list[str], said: str) -> None:
    code, told = _export(str(fake_run), *words, "--output", str(tmp_path))
    assert code == EXIT_USAGE
    assert said in told["error"]
    assert "\n" not in told["error"]


def test_a_run_of_which_nothing_went_well_is_exported_too_but_for_its_timelines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.build.draw_figures", lambda model, target: [])
    run = make_run(tmp_path, [cell("trl", status="failed", cause="system", reason="out of memory")])
    (run / "ledger").mkdir()
    files = ("--to", "csv", "--to", "latex", "--to", "tensorboard")
    assert _export(str(run), *files, "--output", str(tmp_path / "out"))[0] == 0
    code, said = _export(str(run), "--to", "perfetto", "--output", str(tmp_path / "out"))
    assert (code, "no timeline" in said["error"]) == (EXIT_USAGE, True)


def test_a_published_table_is_exported_too_but_for_its_timelines(fake_run: Path, tmp_path: Path) -> None:
    published = tmp_path / "results" / fake_run.name
    published.mkdir(parents=True)
    for name in ("report.json", "manifest.json"):
        (published / name).write_bytes((fake_run / name).read_bytes())
    os.utime(published / "report.json", (0, 0))  # a checkout keeps no times
    assert _export(str(published), "--to", "csv", "--output", str(tmp_path))[0] == 0
    code, said = _export(str(published), "--to", "perfetto", "--output", str(tmp_path))
    assert (code, "export the run itself" in said["error"]) == (EXIT_USAGE, True)


def test_a_report_older_than_its_run_is_made_again(fake_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr("harness.report.build.build_report", made.append)
    os.utime(fake_run / "report.json", (0, 0))
    try:
        read_report(fake_run)
    finally:
        os.utime(fake_run / "report.json")
    assert made == [fake_run]


def test_nothing_of_this_machine_is_in_it(fake_run: Path, tmp_path: Path) -> None:
    assert _export(str(fake_run), "--to", "csv", "--to", "latex", "--output", str(tmp_path))[0] == 0
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert str(fake_run.parent) not in path.read_text(encoding="utf-8")
