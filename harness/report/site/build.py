"""Writes the site: a folder of plain pages that stands where the folder before it stood, once it is whole."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import TemplateError

from harness.errors import UserError
from harness.report.seals import SEAL
from harness.report.site.documents import Rendered, render_document
from harness.report.site.pages import Pages
from harness.report.site.reading import UNREADABLE, Broken, Results, Run, broken, read_results
from harness.report.site.rows import rows_of
from harness.report.site.scripts import script
from harness.report.site.search import entries_of

MARK = ".rlaxes-site"
"""A file in every site: a folder without it is not ours to replace."""
COPIED = ("report.html", "report.json", "report.md", "manifest.json", SEAL)


@dataclass
class Built:
    """What was built: the first page, how many runs and pages of words, what was left out, and what was changed after
    its publication."""

    index: Path
    runs: int
    pages: int
    broken: list[Broken] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def build_site(results: Path, output: Path, adapters: Mapping[str, Mapping[str, Any]]) -> Built:
    """Build the site of all published results. What cannot be read is named on the first page and left out.

    Args:
        adapters: the content of each `adapter.yaml`, for the page of frameworks.

    Raises:
        UserError: nothing is published, or `output` is a folder that is no site.
    """
    folder = output.resolve()
    _refuse(results, output)
    found = read_results(results)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    built = _write(found, results, partial, adapters)
    (partial / MARK).write_text("made by rlaxes site\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return Built(output / "index.html", *built, found.broken, found.changed)


def _refuse(results: Path, output: Path) -> None:
    """Nothing that a person made is ever removed."""
    here, there = results.resolve(), output.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise UserError(f"a site is never written over or into results: {output} is, holds or lies in {results}")
    if output.is_file() or (output.is_dir() and any(output.iterdir()) and not (output / MARK).exists()):
        raise UserError(f"{output} is there and is no site of rlaxes: remove it, or name another folder with --output")


def _write(found: Results, results: Path, folder: Path, adapters: Mapping[str, Mapping[str, Any]]) -> tuple[int, int]:
    """Runs first: one whose page cannot be made is on no other page."""
    pages = Pages(adapters)
    found.runs = [run for run in found.runs if _run(run, pages, folder, found.broken)]
    documents = _documents(found, results, folder, pages)
    assets = folder / "assets"
    assets.mkdir()
    (assets / "site.css").write_text(pages.style(), encoding="utf-8")
    shutil.copyfile(Path(__file__).parent / "templates" / "site.js", assets / "site.js")
    entries = entries_of(found.runs, documents, adapters)
    (assets / "search.js").write_text(script("search", entries), encoding="utf-8")
    for name, text in pages.first_pages(found, documents):
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return len(found.runs), len(documents)


def _run(run: Run, pages: Pages, folder: Path, found: list[Broken]) -> bool:
    """One run's folder; False where its report lacks something that its page needs."""
    try:
        files = [name for name in COPIED if (run.path / name).is_file()]
        page, data = pages.run(run, files), script(run.folder, rows_of(run))
    except (*UNREADABLE, TemplateError) as error:
        found.append(broken(f"{run.folder}/report.json", error, run.path.parent))
        return False
    place = folder / "results" / run.folder
    place.mkdir(parents=True)
    (place / "index.html").write_text(page, encoding="utf-8")
    (place / "rows.js").write_text(data, encoding="utf-8")
    for name in files:
        shutil.copyfile(run.path / name, place / name)
    if (run.path / "figures").is_dir():
        shutil.copytree(run.path / "figures", place / "figures")
    return True


def _documents(found: Results, results: Path, folder: Path, pages: Pages) -> list[Rendered]:
    """The pages of words; a file of the results that one of them links to is copied."""
    names = {document.name for document in found.documents}
    runs = {run.folder for run in found.runs}

    def place(name: str) -> str | None:
        path = PurePosixPath(name)
        if name == "README.md":
            return "../index.html"
        if name in names:
            return path.with_suffix(".html").as_posix()
        if path.parent.as_posix() in runs and path.name == "report.md":
            return (path.parent / "index.html").as_posix()
        if ".." in path.parts or not (results / name).is_file():
            return None
        (folder / "results" / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(results / name, folder / "results" / name)
        return name

    rendered: list[Rendered] = []
    for document in found.documents:
        try:
            page = render_document(document, place)
        except UNREADABLE as error:
            found.broken.append(broken(document.name, error, results))
            continue
        target = folder / "results" / PurePosixPath(document.name).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(pages.document(page), encoding="utf-8")
        rendered.append(page)
    return rendered
