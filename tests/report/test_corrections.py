"""Corrections stand beside what they correct: dated, numbered, never changed, never taken back."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.report.corrections import Correction, corrections_of, is_withdrawn, write_correction
from harness.report.published_index import report_in
from tests.report.published import MEMORY, publish_page, publish_report
from tests.report.reports import FIGURES, row

WORDS: dict[str, Any] = {"what": "the load was 6, not 0.6", "why": "a digit was lost; found by reading the manifest"}

LAWFUL: dict[str, Any] = {"of": "run", "number": 1, "date": "2026-12-01", **WORDS, "by": None}
LAWFUL |= {"withdrawn": False, "rows": []}


def test_a_correction_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = publish_report(tmp_path, 1)
    report = report_in(run)
    first = write_correction(run, **WORDS, report=report)
    second = write_correction(run, what="x", why="y", by="A", rows=("reference/*/free",), withdrawn=True, report=report)
    assert [path.name for path in (first, second)] == [f"{run.name}.correction-{n}.yaml" for n in (1, 2)]
    one, two = corrections_of(run)
    assert (one.number, one.of, one.what, one.rows, one.withdrawn) == (1, run.name, WORDS["what"], (), False)
    assert (two.by, two.rows, two.withdrawn) == ("A", ("reference/*/free",), True)
    assert two.line() == f"{two.date}, withdrawn (reference/*/free): x. Why: y. (A)"
    assert corrections_of(publish_report(tmp_path, 2)) == []


@pytest.mark.parametrize(
    ("patterns", "fits"),
    [
        ((), True),
        (("trl",), True),
        (("reference",), False),
        (("*/colocated_sync",), True),
        (("*/*/fixed_length",), False),
        (("*/colocated_*/*/t_seq_*",), True),
        (("t*l/*/*/*_seconds",), True),
        (("tr/*", "*/*/*/t_seq"), False),
        (("trl/*/free/t_seq_part_seconds",), True),
        (("trl/*/free/t_seq_part_seconds[rollout]",), True),
        (("trl/*/free/t_seq_part_seconds[train]",), False),
        (("reference", "*/*/*/t_seq_part_seconds"), True),
    ],
)
def test_a_pattern_fits_by_its_parts(patterns: tuple[str, ...], fits: bool) -> None:
    rollout = row("trl", next(figure for figure in FIGURES if figure[3] == "rollout"))
    correction = Correction("run", 1, "2026-12-01", "what", "why", None, True, patterns)
    assert correction.touches(rollout) == fits == is_withdrawn(rollout, [correction])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"what": "  "}, "has to say what: --what"),
        ({"why": ""}, "has to say why: --why"),
        ({"rows": ("trk",)}, "--rows trk fits no row of"),
        ({"rows": ("a/b/c/d/e",)}, "write adapter/layout/track/measure"),
    ],
)
def test_a_correction_that_lacks_something_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    run = publish_report(tmp_path, 1)
    with pytest.raises(UserError, match=message):
        write_correction(run, **WORDS | changes, report=report_in(run))
    assert corrections_of(run) == []


def test_a_page_has_no_rows(tmp_path: Path) -> None:
    page = publish_page(tmp_path)
    with pytest.raises(UserError, match="is a page and has no rows"):
        write_correction(page, **WORDS, rows=("trl",))
    assert write_correction(page, **WORDS).name == "kills.md.correction-1.yaml"


def test_one_that_is_missing_is_told(tmp_path: Path) -> None:
    run = publish_report(tmp_path, 1)
    first = write_correction(run, **WORDS)
    write_correction(run, **WORDS)
    first.unlink()
    with pytest.raises(UserError, match="its correction 1 is missing"):
        corrections_of(run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a list", "is no correction"),
        ("{", "is no correction"),
        ("what: x", "is no correction"),
        (yaml.safe_dump({"of": "other"}), "is no correction"),
        (yaml.safe_dump(LAWFUL | {"rows": "trl"}), "rows has to be a list"),
        (yaml.safe_dump(LAWFUL | {"withdrawn": "no"}), "withdrawn true or false"),
        (yaml.safe_dump(LAWFUL | {"number": 2}), "says that it is correction 2 of run"),
        (yaml.safe_dump(LAWFUL | {"more": 1}), "is no correction"),
    ],
)
def test_a_torn_one_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    run = publish_report(tmp_path, 1)
    run.with_name(f"{run.name}.correction-1.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message) as caught:
        corrections_of(run)
    assert "\n" not in str(caught.value)


@settings(max_examples=40, deadline=None)
@given(what=st.text(min_size=1).filter(str.strip), why=st.text(min_size=1).filter(str.strip))
def test_any_words_come_back_on_one_line(tmp_path_factory: pytest.TempPathFactory, what: str, why: str) -> None:
    page = publish_page(tmp_path_factory.mktemp("results"))
    write_correction(page, what=what, why=why)
    (read,) = corrections_of(page)
    assert (read.what.split(), read.why.split()) == (what.split(), why.split())


def test_another_measure_of_the_same_cell_stands(tmp_path: Path) -> None:
    run = publish_report(tmp_path, 1, rows=[row("reference", MEMORY)])
    write_correction(run, **WORDS, rows=("reference/*/*/memory_peak_bytes",), withdrawn=True, report=report_in(run))
    corrections = corrections_of(run)
    assert is_withdrawn(row("reference", MEMORY), corrections)
    assert not is_withdrawn(row("reference", FIGURES[0]), corrections)
