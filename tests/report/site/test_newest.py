from dataclasses import replace
from pathlib import Path

from harness.report.site.newest import newest_view
from harness.report.site.reading import Run, read_results
from tests.report.site.folders import ELSEWHERE, FIRST, SECOND, correct, write_run


def _runs(folder: Path) -> list[Run]:
    for run_id in (FIRST, SECOND, ELSEWHERE):
        write_run(folder, run_id)
    return read_results(folder).runs


def test_systems_stand_by_name_under_their_layout_whatever_their_values(tmp_path: Path) -> None:
    (table,) = newest_view(_runs(tmp_path))["tables"]
    assert [group.layout for group in table.groups] == ["colocated_sync"]
    assert [name for name, _ in table.groups[0].lines] == ["reference", "trl"]
    assert [head.title for head in table.heads][:2] == ["Output tokens/s", "Training tokens/s"]
    assert all(len(entries) == len(table.heads) for _, entries in table.groups[0].lines)


def test_what_was_not_measured_here_is_in_no_table(tmp_path: Path) -> None:
    newest, middle, oldest = _runs(tmp_path)
    foreign = replace(newest, evidence="replayed from logs")
    assert newest_view([foreign, middle, oldest])["date"] == SECOND[:10]
    assert newest_view([foreign]) == {"tables": []}


def test_a_run_that_was_taken_back_is_in_no_table(tmp_path: Path) -> None:
    correct(write_run(tmp_path, FIRST), rows=[])
    assert newest_view(read_results(tmp_path).runs) == {"tables": []}


def test_a_run_of_one_system_comes_after_one_of_several(tmp_path: Path) -> None:
    newest, middle, _ = _runs(tmp_path)
    newest.model.cells = [{**cell, "system": "trl"} for cell in newest.model.cells]  # two versions of one
    assert newest_view([newest, middle])["date"] == SECOND[:10]
    assert newest_view([newest])["date"] == ELSEWHERE[:10]
