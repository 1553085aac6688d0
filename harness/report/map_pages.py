"""The framework map as Markdown (for docs/framework_map.md) and as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.contract.axes import AXES
from harness.report import format as fmt
from harness.report.framework_map import Former, MapEntry
from harness.report.markup import code, escape, grid

BEGIN, END = "<!-- rlaxes axes --markdown -->", "<!-- end -->"


def map_markdown(entries: Sequence[MapEntry]) -> str:
    """A table an axis: values, the sentence with its source, and what held before. What was measured is left out:
    it is of a run, and not of a framework."""
    lines: list[str] = []
    for axis, declared in groupby(entries, key=lambda entry: entry.axis):
        kind = AXES[axis]
        lines += [f"## {_upper(kind.title)}", "", f"{_upper(kind.asks)} `{axis}`:", ""]
        lines += [f"- `{value}`: {escape(meaning)}" for value, meaning in kind.values.items()]
        lines += ["", *grid(["framework", "values", "declared", "changed"], map(_row, declared))]
    return "\n".join(lines)


def _upper(words: str) -> str:
    return words[0].upper() + words[1:]


def _row(entry: MapEntry) -> list[str]:
    name = f"{code(entry.adapter)} {escape(entry.version)}"
    stale = f"<br>**stale**: {escape(entry.stale)}" if entry.stale else ""
    declared = f"{escape(entry.declared)} ({code(entry.source)}, {entry.date}){stale}"
    changed = "<br>".join(escape(said_before(former)) for former in entry.changed) or fmt.NOTHING
    values = ", ".join(map(code, entry.values))
    unread = f"; not looked for: {', '.join(map(code, entry.unread))}" if entry.unread else ""
    return [name, values + unread, declared, changed]


def said_before(former: Former) -> str:
    """A former value in a line."""
    return f"until {former.until} (seen at {former.version}): {former.declared} ({former.source}, {former.date})"


def map_html(entries: Sequence[MapEntry], adapters: Mapping[str, Mapping[str, Any]]) -> str:
    """The page: axes as lines, frameworks as columns."""
    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("map.html.j2").render(**map_context(entries, adapters))


def map_context(entries: Sequence[MapEntry], adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What `map.html.j2` prints."""
    return {
        "axes": {axis: AXES[axis] for axis in dict.fromkeys(entry.axis for entry in entries)},
        "titles": {name: f"{adapters[name]['title']} {adapters[name]['version']}" for name in sorted(adapters)},
        "by_place": {(entry.axis, entry.adapter): entry for entry in entries},
        "said_before": said_before,
    }


def with_map(page: str, entries: Sequence[MapEntry]) -> str:
    """A page in which the part between `BEGIN` and `END` is the map."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{map_markdown(entries)}\n{END}{rest.partition(END)[2]}"
