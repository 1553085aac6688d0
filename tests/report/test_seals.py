"""Seals: every change of what is published is found, and told with the file."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.report.corrections import write_correction
from harness.report.published_index import complaints, index_page, write_index
from harness.report.seals import SEAL, broken_seals, published_in, read_seal, seal_of, write_seal
from tests.report.published import publish_page, publish_report

RESULTS = Path(__file__).resolve().parents[2] / "results"


def _results(folder: Path) -> tuple[Path, Path]:
    run, page = publish_report(folder, 1), publish_page(folder)
    write_correction(run, what="what", why="why")
    write_index(folder)
    return run, page


def test_what_is_published_is_found_and_whole(tmp_path: Path) -> None:
    run, page = _results(tmp_path)
    assert published_in(tmp_path) == sorted([run, page])
    assert complaints(tmp_path) == []
    seal = read_seal(run)
    assert (seal.evidence, seal.date) == ("measured here", "2026-12-01")
    assert set(seal.files) == {"report.json", "report.md", "manifest.json"}
    assert read_seal(page).evidence == "author-reported"


def test_what_an_interrupted_publication_left_is_not_published(tmp_path: Path) -> None:
    run, _ = _results(tmp_path)
    partial = run.with_name(".other.partial")
    shutil.copytree(run, partial)
    assert partial not in published_in(tmp_path)
    assert all("has no seal" in line or "came after" in line for line in broken_seals(tmp_path))


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum here")
def test_a_seal_is_checked_without_rlaxes(tmp_path: Path) -> None:
    run, page = _results(tmp_path)
    for folder, seal in ((run, SEAL), (page.parent, f"{page.name}.{SEAL}")):
        done = subprocess.run(["sha256sum", "-c", seal], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def _edit(run: Path, page: Path) -> str:
    (run / "report.md").write_text("# better\n", encoding="utf-8")
    return "report.md was changed after its publication on 2026-12-01"


def _remove(run: Path, page: Path) -> str:
    (run / "report.json").unlink()
    return "report.json is missing; it was published on 2026-12-01"


def _add(run: Path, page: Path) -> str:
    (run / "note.txt").write_text("", encoding="utf-8")
    return "note.txt came after the publication"


def _edit_page(run: Path, page: Path) -> str:
    page.write_text("# Fewer kills\n", encoding="utf-8")
    return "kills.md was changed after its publication"


def _unsealed(run: Path, page: Path) -> str:
    (page.parent / "more.md").write_text("# More\n", encoding="utf-8")
    return "more.md has no seal; publish a run with `rlaxes publish RUN`, a page with `rlaxes publish "


def _stray(run: Path, page: Path) -> str:
    (page.parent / "gone.md.correction-1.yaml").write_text("", encoding="utf-8")
    return "gone.md.correction-1.yaml corrects nothing that is published"


def _torn(run: Path, page: Path) -> str:
    seal_of(run).write_text("# measured here\n", encoding="utf-8")
    return "SEAL is no seal"


def _gap(run: Path, page: Path) -> str:
    run.with_name(f"{run.name}.correction-1.yaml").rename(run.with_name(f"{run.name}.correction-2.yaml"))
    return "correction-2.yaml says that it is correction 1 of"


@pytest.mark.parametrize("harm", [_edit, _remove, _add, _edit_page, _unsealed, _stray, _torn, _gap])
def test_every_harm_is_told(tmp_path: Path, harm: Callable[[Path, Path], str]) -> None:
    run, page = _results(tmp_path)
    said = harm(run, page)
    broken = broken_seals(tmp_path)
    assert len(broken) == 1
    assert said in broken[0]
    assert "\n" not in broken[0]


def test_an_index_that_is_not_current_is_told(tmp_path: Path) -> None:
    _results(tmp_path)
    publish_report(tmp_path, 2)
    assert complaints(tmp_path) == [
        f"{tmp_path}/README.md is not what lies in {tmp_path}; the next `rlaxes publish` or `rlaxes correct` writes it"
    ]


def test_a_seal_is_written_once(tmp_path: Path) -> None:
    run, page = _results(tmp_path)
    before = seal_of(run).read_bytes()
    for published in (run, page):
        with pytest.raises(UserError, match="is published already, and what is published is never changed"):
            write_seal(published, "measured here")
    assert seal_of(run).read_bytes() == before


def test_nothing_in_the_repository_was_changed_after_its_publication() -> None:
    assert complaints(RESULTS) == []


def test_no_seal_and_no_correction_was_ever_changed_or_removed() -> None:
    """The seals hold the tables; that nobody wrote a seal anew is what git tells."""
    words = ["git", "-C", str(RESULTS), "log", "--format=", "--name-status", "--diff-filter=MDR", "--"]
    try:
        done = subprocess.run([*words, "*SEAL", "*.correction-*"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    assert not done.stdout.strip()


def test_grades_stand_apart_in_the_index(tmp_path: Path) -> None:
    run, _ = _results(tmp_path)
    text = index_page(tmp_path)
    measured, reported = text.index("## Measured here"), text.index("## Author-reported")
    assert measured < text.index(run.name) < reported < text.index("kills.md")
    assert f"{run.name}.correction-1.yaml): what" in text
