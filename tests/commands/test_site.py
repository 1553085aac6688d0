"""`rlaxes site`: what it prints and how it ends."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from harness.cli import app
from harness.commands.words import EXIT_COULD_NOT_MEASURE, EXIT_FINE, EXIT_USAGE
from harness.report.seals import write_seal
from tests.report.site.folders import FIRST, write_run


def _site(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(
        app, ["site", "--results", str(folder / "results"), "--output", str(folder / "site"), *words]
    )


def test_it_says_where_the_site_is(tmp_path: Path) -> None:
    write_seal(write_run(tmp_path / "results", FIRST), "measured here")
    done = _site(tmp_path)
    assert done.exit_code == EXIT_FINE, done.output
    assert done.stdout == f"{tmp_path / 'site' / 'index.html'}: 1 published runs, 0 pages beside them\n"
    assert not done.stderr
    text = (tmp_path / "site" / "frameworks.html").read_text(encoding="utf-8")
    assert all(f'data-framework="{name}"' in text for name in ("areal", "trl", "verl"))
    assert 'data-framework="fake"' not in text


def test_a_broken_report_ends_with_its_own_code(tmp_path: Path) -> None:
    (write_run(tmp_path / "results", FIRST) / "report.json").write_text("{", encoding="utf-8")
    done = _site(tmp_path, "--json")
    assert done.exit_code == EXIT_COULD_NOT_MEASURE
    said = json.loads(done.stdout)
    assert [one["path"] for one in said["broken"]] == [f"2026-11-28/cpu/{FIRST}/report.json"]
    assert f"left out: 2026-11-28/cpu/{FIRST}/report.json: " in " ".join(done.stderr.split())
    assert Path(said["site"]).is_file()


def test_nothing_to_show_is_the_users_to_mend(tmp_path: Path) -> None:
    done = _site(tmp_path)
    assert done.exit_code == EXIT_USAGE
    assert done.stderr.startswith("rlaxes: there is no folder")
    assert not done.stdout
