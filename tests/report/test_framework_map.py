"""The map: every value with its source, what held before, what the newest published run measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UserError
from harness.report.corrections import write_correction
from harness.report.framework_map import Seen, framework_map, published
from harness.report.map_pages import map_html, map_markdown, with_map

WAS = {"declared": "HF | <b>", "version": "0.1", "until": "0.2", "source": "y.py at v0.1", "date": "2026-11-30"}
ENGINE: dict[str, Any] = {"declared": "vLLM <i>", "values": ["vllm"], "source": "x.py", "date": "2026-11-30"}
ADAPTERS = {
    "two": {"title": "Two", "version": "2.0", "pinned": "2026-11-30", "axes": {"rollout_engine": ENGINE}},
    "one": {
        "title": "One",
        "version": "1.0",
        "pinned": "2026-12-01",
        "axes": {"rollout_engine": ENGINE | {"was": [WAS]}, "queue": {**ENGINE, "values": ["none"], "version": "0.9"}},
    },
}


def test_axes_stand_in_their_order_and_frameworks_in_that_of_their_names() -> None:
    entries = framework_map(ADAPTERS)
    assert [(entry.axis, entry.adapter) for entry in entries] == [
        ("queue", "one"),
        ("rollout_engine", "one"),
        ("rollout_engine", "two"),
    ]
    queue, one, two = entries
    assert queue.stale == "it speaks of 0.9, the pin is 1.0"
    assert one.stale == "it was read on 2026-11-30, the pin is of 2026-12-01"
    assert (two.stale, two.measured, two.changed) == (None, None, ())
    assert [(former.declared, former.until) for former in one.changed] == [("HF | <b>", "0.2")]


def _publish(results: Path, run: str, created: str, measured: str | None) -> None:
    axis = {"adapter": "one", "axis": "queue", "measured": measured, "evidence": "queue: depth", "differs": False}
    report = {"run_id": run, "created": created, "adapters": {"one": {"version": "1.0"}}, "axes": [axis]}
    folder = results / created[:10] / "cpu" / run
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


def test_the_newest_run_that_measured_it_is_the_one(tmp_path: Path) -> None:
    assert published(tmp_path) == {}
    _publish(tmp_path, "b", "2026-11-30T10:00:00+00:00", "4 deep")
    _publish(tmp_path, "a", "2026-11-29T10:00:00+00:00", "3 deep")
    _publish(tmp_path, "c", "2026-12-01T10:00:00+00:00", None)
    seen = published(tmp_path)
    assert seen == {("one", "queue"): Seen("4 deep", "queue: depth", "1.0", "b", differs=False)}
    assert framework_map(ADAPTERS, seen)[0].measured == seen["one", "queue"]


def test_what_was_withdrawn_or_recorded_elsewhere_measured_nothing(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        _publish(tmp_path, f"run{day}", f"2026-12-0{day}T10:00:00+00:00", f"{day} deep")
    write_correction(tmp_path / "2026-12-03" / "cpu" / "run3", what="what", why="why", withdrawn=True)
    path = tmp_path / "2026-12-02" / "cpu" / "run2" / "report.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(report | {"ingested": {"framework": "trl"}}), encoding="utf-8")
    assert published(tmp_path)["one", "queue"].run == "run1"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"created": 1}'])
def test_a_torn_report_is_one_line(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "2026-11-30" / "cpu" / "run"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="is no report that rlaxes published"):
        published(tmp_path)


def test_nothing_that_is_declared_is_markup() -> None:
    seen = {("two", "rollout_engine"): Seen("<u>vllm</u>", "manifest: engine", "2.0", "run", differs=True)}
    entries = framework_map(ADAPTERS, seen)
    for page in (map_markdown(entries), map_html(entries, ADAPTERS)):
        assert "<b>|" not in page
        assert not any(mark in page for mark in ("vLLM <i>", "HF | <b>", "<u>"))
        assert "until 0.2" in page
    assert "declared and measured differ" in map_html(entries, ADAPTERS)
    assert "<u>vllm" not in map_markdown(entries)
    assert "run" not in map_markdown(entries).split()


def test_a_page_keeps_its_other_words() -> None:
    page = "head\n<!-- rlaxes axes --markdown -->\nold\n<!-- end -->\ntail\n"
    made = with_map(page, framework_map(ADAPTERS))
    assert made.startswith("head\n")
    assert made.endswith("<!-- end -->\ntail\n")
    assert "\nold\n" not in made
    assert with_map(made, framework_map(ADAPTERS)) == made
