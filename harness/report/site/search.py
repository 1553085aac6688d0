"""What the site's search looks through: runs, pages of words, axes of frameworks, and definitions of figures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.contract.axes import AXES
from harness.report import format as fmt
from harness.report.axes import declared_of
from harness.report.site.documents import Rendered
from harness.report.site.reading import Run
from harness.report.views import clean

Entry = dict[str, str]


def entries_of(
    runs: Sequence[Run], documents: Sequence[Rendered], adapters: Mapping[str, Mapping[str, Any]]
) -> list[Entry]:
    """In the order in which hits are shown: by kind, then as the site lists them; nothing is weighed."""
    return [*_runs(runs), *_documents(documents), *_frameworks(adapters), *_definitions(runs)]


def _entry(kind: str, title: str, href: str, text: str) -> Entry:
    return {"kind": kind, "title": clean(title), "href": href, "text": " ".join(clean(text).split())}


def _runs(runs: Sequence[Run]) -> Iterator[Entry]:
    for run in runs:
        facts = [
            f"{key} {value}"
            for group in (run.model.task, run.model.machine, run.model.code)
            for key, value in group.items()
        ]
        systems = [f"{name} {said['title']} {said['version']}" for name, said in sorted(run.model.adapters.items())]
        cautions = [f"{caution.about}: {caution.text}" for caution in run.model.cautions]
        corrections = [correction.line() for correction in run.corrections]
        text = ". ".join([*corrections, *systems, *facts, run.evidence, *cautions])
        title = f"{run.date}: {run.model.title} ({run.model.run_id})"
        yield _entry("Runs", title, f"results/{run.folder}/index.html", text)


def _documents(documents: Sequence[Rendered]) -> Iterator[Entry]:
    for page in documents:
        kind = f"Pages, {page.document.evidence}"
        href = f"results/{page.document.name.removesuffix('.md')}.html"
        for section in page.sections:
            title = page.title if not section.anchor else f"{page.title}: {section.title}"
            yield _entry(kind, title, href + (f"#{section.anchor}" if section.anchor else ""), section.text)


def _frameworks(adapters: Mapping[str, Mapping[str, Any]]) -> Iterator[Entry]:
    for _, spec in sorted(adapters.items()):
        for axis in (axis for axis in AXES if axis in spec["axes"]):
            said = declared_of(spec, axis)
            text = f"{', '.join(map(fmt.words, said.values))}. {said.value} ({said.source}, {said.version})"
            yield _entry("Frameworks", f"{spec['title']}, {AXES[axis].title}", f"frameworks.html#axis-{axis}", text)


def _definitions(runs: Sequence[Run]) -> Iterator[Entry]:
    """Each figure once, where the newest run that has it defines it."""
    told: set[str] = set()
    for run in runs:
        for tag, said in run.model.definitions.items():
            if tag not in told:
                told.add(tag)
                href = f"results/{run.folder}/index.html#def-{said.number}"
                yield _entry("Figures", said.title, href, f"{tag}, in {said.unit}. {said.definition}")
