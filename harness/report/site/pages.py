"""The pages of the site: which template, and what it prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from jinja2 import Environment, PackageLoader

from harness.compare.judgement import STATES
from harness.contract.axes import AXES
from harness.report.corrections import withdrawn_whole
from harness.report.framework_map import Seen, framework_map, newest_seen
from harness.report.grades import EVIDENCE, MEANINGS
from harness.report.html import context_of, environment
from harness.report.map_pages import map_context
from harness.report.model import ReportModel
from harness.report.published_index import systems_of, task_of
from harness.report.site.documents import Rendered
from harness.report.site.newest import newest_view
from harness.report.site.reading import Results, Run
from harness.report.views import counts

AUTHORS = "author-reported"
TO_RUN = "../../../../"
"""The way from a run's page to the first folder of the site."""


class Pages:
    """Renders every page; `adapters` are the contents of the `adapter.yaml` files by name."""

    def __init__(self, adapters: Mapping[str, Mapping[str, Any]]) -> None:
        self._adapters = adapters
        self._templates: Environment = environment(PackageLoader("harness.report.site"))

    def style(self) -> str:
        """The style sheet: that of a report, and what a site adds."""
        return self._templates.get_template("site.css").render()

    def run(self, run: Run, files: Sequence[str]) -> str:
        """A run's page: its report, with its corrections above and the pictures as files beside it."""
        context = context_of(run.model, lambda figure: f"figures/{figure.name}.svg")
        return self._page("run", TO_RUN, **context, run=run, files=files)

    def document(self, page: Rendered) -> str:
        """A page of words."""
        root = "../" * (page.document.name.count("/") + 1)
        here = "public" if page.document.evidence == AUTHORS else ""
        meaning = MEANINGS[page.document.evidence]
        return self._page("document", root, title=page.title, page=page, here=here, meaning=meaning)

    def first_pages(self, found: Results, documents: Sequence[Rendered]) -> Iterator[tuple[str, str]]:
        """The pages of the first folder, each with its name."""
        runs = [_listed(run) for run in found.runs]
        seen = newest_seen([_axes_told(run) for run in found.runs if run.stands])
        words = [_link(page) for page in sorted(documents, key=_by_date, reverse=True)]
        grades = [(grade, [link for link in words if link["evidence"] == grade]) for grade in EVIDENCE]
        index = {"newest": newest_view(found.runs), "seen": self._axes(seen, found.runs), "found": found}
        pages = [(grade, links) for grade, links in grades if links and grade != AUTHORS]
        yield "index", self._first("index", "Published results", runs=runs, pages=pages, meanings=MEANINGS, **index)
        yield "public", self._first("public", "Public numbers", links=dict(grades)[AUTHORS])
        yield "compare", self._first("compare", "Two dates", runs=runs)
        yield "search", self._first("search", "Search")
        context = map_context(framework_map(self._adapters, seen), self._adapters)
        yield "frameworks", self._page("frameworks", "", **context)

    def _axes(self, seen: Mapping[tuple[str, str], Seen], runs: Sequence[Run]) -> dict[str, Any]:
        """Measured axes as lines, systems as columns in the order of their names; which axes the map tells of, and
        where each run is."""
        names = sorted({name for name, _ in seen})
        lines = [(axis, kind.title, [seen.get((name, axis)) for name in names]) for axis, kind in AXES.items()]
        mapped = {axis for spec in self._adapters.values() for axis in spec["axes"]}
        return {
            "names": names,
            "lines": [line for line in lines if any(line[2])],
            "mapped": mapped,
            "run": {run.model.run_id: run for run in runs},
        }

    def _first(self, name: str, title: str, **context: Any) -> str:
        return self._page(name, "", title=title, here=name, **context)

    def _page(self, name: str, root: str, **context: Any) -> str:
        return self._templates.get_template(f"{name}.html.j2").render(root=root, **context)


def _listed(run: Run) -> dict[str, Any]:
    """A run in a list of runs."""
    return {
        "href": f"results/{run.folder}/index.html",
        "folder": run.folder,
        "id": run.model.run_id,
        "date": run.date,
        "profile": run.model.profile,
        "task": task_of(run.model),
        "systems": systems_of(run.model),
        "names": ", ".join(run.model.names),
        "cells": counts(run.model),
        "verdicts": _verdicts(run.model),
        "evidence": run.evidence,
        "corrections": "withdrawn" if withdrawn_whole(run.corrections) else len(run.corrections),
    }


def _verdicts(model: ReportModel) -> str:
    """How often each state was judged, e.g. `1 worse, 8 no change`; a report of before there were verdicts has none."""
    found = [judgement.state for judgement in model.judgements]
    return ", ".join(f"{found.count(state)} {state}" for state in STATES if state in found) or "none"


def _link(page: Rendered) -> dict[str, Any]:
    document = page.document
    return {
        "href": f"results/{document.name.removesuffix('.md')}.html",
        "title": page.title,
        "date": document.date,
        "evidence": document.evidence,
        "corrections": len(document.corrections),
    }


def _axes_told(run: Run) -> dict[str, Any]:
    """What the framework map reads of a `report.json`; of systems by their own name, not of `trl@1.15.0` and such."""
    model = run.model
    own = {name for name, facts in model.adapters.items() if (facts.get("name") or name) == name}
    axes = [asdict(axis) for axis in model.axes if axis.adapter in own]
    return {"created": model.created, "run_id": model.run_id, "adapters": model.adapters, "axes": axes}


def _by_date(page: Rendered) -> tuple[str, str]:
    return page.document.date, page.document.name
