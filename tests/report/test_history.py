"""History: what may be joined, what may not, and what is said of a change."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.compare.change_points import LEAST_POINTS
from harness.errors import UserError
from harness.report.corrections import write_correction
from harness.report.dated import machine_name, read_reports
from harness.report.history import History, Wanted, history_of
from harness.report.history_page import history_html
from harness.report.history_words import moved_words, verdict_of
from harness.report.hook_facts import HookFact, hook_facts
from harness.report.published_index import report_in
from tests.report.published import MEMORY, publish_report
from tests.report.reports import FIGURES, SYNC, empty_row, row
from tests.report.runs import cell, manifest

SPEED = frozenset({"output_tokens_per_second"})
MACHINE = manifest([])["machine"]


def _history(results: Path, **wanted: Any) -> History:
    return history_of(read_reports([results]), Wanted(**{"measures": SPEED} | wanted))


def test_points_of_the_same_work_on_the_same_machine_are_one_line(tmp_path: Path) -> None:
    for day in (2, 1, 3):
        publish_report(tmp_path, day, 100.0 + day)
    (line,) = _history(tmp_path).lines
    assert [(point.date[:10], point.value) for point in line.points] == [
        ("2026-12-01", 101.0),
        ("2026-12-02", 102.0),
        ("2026-12-03", 103.0),
    ]
    assert line.points[0].low == pytest.approx(99.99)
    assert line.points[0].n == 3
    assert not line.begins
    assert verdict_of(line) == f"too few points (3), change points need {LEAST_POINTS}"


def test_other_settings_begin_another_line_that_says_why(tmp_path: Path) -> None:
    publish_report(tmp_path, 1)
    publish_report(tmp_path, 2, task={"group_size": 4, "horizon": 3})
    first, second = _history(tmp_path).lines
    assert first.settings != second.settings
    assert second.begins == ("task.group_size: 2 -> 4", "task.horizon: not said -> 3")


@pytest.mark.parametrize(
    "harmless", [{"horizon": None}, {}], ids=["a setting that is null is not set", "nothing changed"]
)
def test_what_decides_no_work_begins_no_line(tmp_path: Path, harmless: dict[str, Any]) -> None:
    publish_report(tmp_path, 1)
    publish_report(tmp_path, 2, task=harmless, locks={"reference": "ab"}, rlaxes={"version": "9", "commit": None})
    (line,) = _history(tmp_path).lines
    assert len(line.points) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": MACHINE | {"id": "0123abcd"}},
        {"machine": MACHINE | {"cores": 4}},
        {"bundle": {"hash": "other prompts"}},
    ],
    ids=["an id", "another kind", "another checkpoint"],
)
def test_another_machine_or_checkpoint_is_never_joined(tmp_path: Path, changes: dict[str, Any]) -> None:
    publish_report(tmp_path, 1)
    publish_report(tmp_path, 2, **changes)
    assert [len(line.points) for line in _history(tmp_path).lines] == [1, 1]


def test_a_branch_that_moves_on_is_one_line_and_a_lock_is_another(tmp_path: Path) -> None:
    word = "https://example.org/trl@main"
    for day, commit in ((1, "aa"), (2, "bb")):
        tracked = {"name": f"git-{commit}", "word": word, "kind": "git", "commit": commit}
        facts = {"name": "reference", "version": "1.1", "tracked": tracked}
        publish_report(tmp_path, day, adapters={"reference": facts})
    publish_report(tmp_path, 3, adapters={"reference": facts})
    publish_report(tmp_path, 4, adapters={"reference": facts | {"tracked": {"kind": "lock", "word": "cpu.txt"}}})
    lock, branch = _history(tmp_path, adapters=frozenset({"reference"})).lines
    assert (lock.adapter, len(lock.points)) == ("reference", 1)
    assert (branch.adapter, len(branch.points)) == (f"reference@{word}", 3)
    assert [point.context["revision"] for point in branch.points] == ["aa", "bb", "bb"]


def test_a_machine_is_called_by_its_id_or_by_its_kind() -> None:
    assert machine_name(MACHINE | {"id": "0123abcd"}) == "0123abcd"
    assert machine_name(MACHINE) == "Example, 2 cores, 16 GiB, without an id"
    assert machine_name({}) == "unknown machine"


def test_cells_of_a_run_on_several_machines_say_so(tmp_path: Path) -> None:
    run = publish_report(tmp_path, 1)
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    for one, machine in zip(report["cells"], ("aa", "bb", "aa"), strict=True):
        one["machine"] = machine
    (run / "report.json").write_text(json.dumps(report), encoding="utf-8")
    history = _history(tmp_path)
    assert history.lines == []
    assert history.left_out == [f"{run.name}: figures whose repeats ran on several machines (1)"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"configs": {}}, "settings are not told"), ({"machine": {}}, "machine is not told")],
)
def test_what_does_not_say_what_it_is_of_is_joined_with_nothing(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    for day in (1, 2):
        run = publish_report(tmp_path, day)
        content = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        (run / "manifest.json").write_text(json.dumps(content | changes), encoding="utf-8")
    history = _history(tmp_path)
    assert history.lines == []
    assert all(reason in line for line in history.left_out)


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """Twelve runs; with the seventh rlaxes and the lock are others, and the speed is a fifth lower."""
    pytest.importorskip("ruptures", reason="it has no release for this Python")
    for day in range(1, 13):
        noise = 1 + 0.002 * (day % 3)
        late: dict[str, Any] = {"rlaxes": {"version": "0.2.0", "commit": "fedcba9876543210", "dirty": False}}
        late |= {"locks": {"reference": "0f" * 32}}
        late |= {"cells": [cell("reference", repeat) | {"load_before": [0.7, 0, 0]} for repeat in range(3)]}
        publish_report(tmp_path, day, (100.0 if day < 7 else 80.0) * noise, **(late if day >= 7 else {}))
    return tmp_path


def test_a_change_says_what_changed_beside_it(moved: Path) -> None:
    (line,) = _history(moved).lines
    (change,) = line.moved
    assert (change.run_before[:10], change.run_after[:10]) == ("2026-12-06", "2026-12-07")
    assert change.ratio == pytest.approx(0.8, rel=0.01)
    assert change.what == (
        "load before its cells: 0.1 -> 0.7",
        "lock: not said -> 0f0f0f0f0f0f",
        "rlaxes: 0.1.0 0123456789ab -> 0.2.0 fedcba987654",
    )
    assert "100 tokens/s -> 80.2 tokens/s" in moved_words(change, line.unit)
    assert verdict_of(line).startswith("one change; one of ")


def test_without_ruptures_the_lines_are_there_and_say_so(moved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    (line,) = _history(moved).lines
    assert len(line.points) == 12
    assert verdict_of(line).startswith("change points need the package ruptures, which has no release for this Python")


@pytest.mark.parametrize(
    ("since", "lines", "moved_lines"), [("2026-12-07", 1, 1), ("2026-12-08", 1, 0), ("2027", 0, 0)]
)
def test_since_a_day(moved: Path, since: str, lines: int, moved_lines: int) -> None:
    history = _history(moved, since=since)
    assert len(history.lines) == lines
    assert sum(bool(line.moved) for line in history.lines) == moved_lines
    assert all(len(line.points) == 12 for line in history.lines)


def test_the_page_shows_it_and_escapes_what_is_not_ours(moved: Path) -> None:
    facts = [HookFact("trl", "1<b>", "2026-12-01", "run", ("gone <i>",))]
    keys = [{"framework": "trl", "version": "1", "line": "<u>x", "source": "s", "date": "d"}]
    page = history_html(_history(moved), facts, [], keys)
    assert page.count("data:image/svg+xml;base64,") == 1
    assert "; lock: not said -&gt; 0f0f0f0f0f0f; rlaxes: 0.1.0" in page
    assert not any(mark in page for mark in ("<b>:", "<i>", "<u>"))
    assert "<script" not in page


def test_what_was_withdrawn_is_in_no_line(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        run = publish_report(tmp_path, day)
        write_correction(run, what="busy", why="a test ran", withdrawn=day == 2, report=report_in(run))
    history = _history(tmp_path)
    assert [point.date[8:10] for point in history.lines[0].points] == ["01", "03"]
    assert all(point.corrections for point in history.lines[0].points)
    assert history.left_out == ["2026-12-02-100000-0002: figures that a correction withdrew (1)"]


def test_only_measured_figures_are_points(tmp_path: Path) -> None:
    publish_report(tmp_path, 1, rows=[empty_row("reference", 0, "failed", "it crashed")])
    publish_report(tmp_path, 2, rows=[row("reference", FIGURES[0], value=float("inf"), low=None, high=None)])
    publish_report(tmp_path, 3, rows=[row("reference", FIGURES[0], state="as written")])
    kept = row("reference", FIGURES[0], state="not comparable", low=None, high=None, reason="longer completions")
    publish_report(tmp_path, 4, rows=[kept])
    (line,) = _history(tmp_path).lines
    (point,) = line.points
    assert point.state == "not comparable"
    assert point.low == min(value for value in kept.repeats if value is not None)


def test_a_run_that_was_recorded_elsewhere_is_left_out(tmp_path: Path) -> None:
    run = publish_report(tmp_path, 1)
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    (run / "report.json").write_text(json.dumps(report | {"ingested": {"framework": "trl"}}), encoding="utf-8")
    history = _history(tmp_path)
    assert history.lines == []
    assert "replayed from logs" in history.left_out[0]


def test_what_is_asked_for(tmp_path: Path) -> None:
    figures = [row("reference", FIGURES[0]), row("reference", MEMORY), row("reference", FIGURES[SYNC])]
    publish_report(tmp_path, 1, rows=[*figures, row("reference", (*MEMORY[:3], "rollout", *MEMORY[4:]))])

    def names(**wanted: Any) -> list[str]:
        return [line.measure + line.variant for line in _history(tmp_path, **wanted).lines]

    assert names(measures=None) == ["memory_peak_bytes", "t_seq_part_secondssync"]
    assert names(measures=frozenset({"t_seq_part_seconds[sync]"})) == ["t_seq_part_secondssync"]
    assert names(adapters=frozenset({"trl"})) == []
    assert names(layouts=frozenset({"colocated_sync"}), tracks=frozenset({"free"})) == ["output_tokens_per_second"]


@pytest.mark.parametrize("text", ["", "{}", "[]"])
def test_a_torn_report_is_one_line(tmp_path: Path, text: str) -> None:
    run = publish_report(tmp_path, 1)
    (run / "report.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="is no report that this rlaxes reads"):
        read_reports([tmp_path])


def test_a_folder_without_a_report_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no report: name a folder of results, of runs, or one run"):
        read_reports([tmp_path])


def test_a_run_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    run = publish_report(tmp_path, 1)
    assert len(read_reports([tmp_path, run, run.parent])) == 1


def test_hook_points_of_a_version_are_told_by_its_cells(tmp_path: Path) -> None:
    publish_report(tmp_path, 1)
    gone = "hook drift: trl:GRPOTrainer.fit (startup) is gone: begins"
    failed = cell("reference", status="failed", cause="harness", reason=f"{gone}; {gone}2")
    later: dict[str, Any] = {"cells": [failed], "adapters": {"reference": {"name": "reference", "version": "2.0"}}}
    publish_report(tmp_path, 2, **later)
    publish_report(tmp_path, 3)
    facts = hook_facts(read_reports([tmp_path]))
    assert [(fact.version, fact.date, fact.gone) for fact in facts] == [
        ("2.0", "2026-12-02", (gone, f"{gone}2")),
        ("1.0", "2026-12-03", ()),
    ]


def test_what_track_said_of_hook_points_is_read(tmp_path: Path) -> None:
    publish_report(tmp_path, 1)
    sides = {side: {"label": f"trl@1.{n}.0", "release": f"1.{n}.0"} for n, side in enumerate(("pin", "candidate"))}
    for name, drift in (("drifted", {"trl@1.1.0": ["hook drift: x is gone"]}), ("fine", {})):
        answer = {**sides, "hook_drift": drift}
        (tmp_path / "2026-12-01" / "cpu" / f"{name}.json").write_text(json.dumps(answer), encoding="utf-8")
    facts = [fact for fact in hook_facts([], [tmp_path]) if fact.adapter == "trl"]
    assert [(fact.version, fact.date, fact.run, fact.gone) for fact in facts] == [
        ("1.0.0", "2026-12-01", "drifted.json", ()),
        ("1.1.0", "2026-12-01", "drifted.json", ("hook drift: x is gone",)),
    ]
