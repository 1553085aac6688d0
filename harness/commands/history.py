"""The command that reads dated reports as lines of time: history."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.commands.words import AsJson, one_line_errors, print_json
from harness.errors import UserError
from harness.execute.adapter import find_adapters
from harness.ingest.key_changes import KeyChange, key_changes
from harness.ingest.keymap import KEYS_FILE
from harness.measure.api import catalogue
from harness.report.dated import read_reports
from harness.report.framework_map import MapEntry, framework_map
from harness.report.history import History, Wanted, history_of
from harness.report.history_lines import Line
from harness.report.history_words import head_of, moved_words, point_words, title_of, verdict_of
from harness.report.hook_facts import HookFact, hook_facts
from harness.report.map_pages import said_before

NAMES = ("adapter", "layout", "track", "measure")
FILTERS = (*NAMES, "since")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MOST_POINTS = 6
"""Of a line in a terminal, the newest; the page and `--json` have all."""


@one_line_errors
def history(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Folders of results or runs; adapter=, layout=, track=, measure=, since=DAY."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the history as one HTML page.")] = None,
    as_json: AsJson = False,
) -> None:
    """What changed over the dated results: figures with their change points, hook points, axes, native keys."""
    folders, chosen = _split(words or [])
    folders = folders or [Path("results")]
    reports = read_reports(folders)
    found = history_of(reports, _wanted(chosen))
    declared = _declared(chosen.get("adapter"))
    hooks = [fact for fact in hook_facts(reports, folders) if fact.adapter in declared]
    axes = [entry for entry in framework_map({name: find_adapters()[name].spec for name in declared}) if entry.changed]
    keys = [change for name in declared for change in _keys(name)]
    if html:
        from harness.report.history_page import history_html  # draws, as `report` does

        html.write_text(
            history_html(found, hooks, axes, [asdict(key) | {"line": key.line()} for key in keys]), encoding="utf-8"
        )
    if as_json:
        print_json(
            {
                "reports": [report.name for report in reports],
                "lines": [line.as_dict() for line in found.lines],
                "left_out": found.left_out,
                "hooks": [asdict(fact) for fact in hooks],
                "axes": [asdict(entry) for entry in axes],
                "keys": [asdict(change) for change in keys],
            }
        )
    elif not html:
        _print(found, hooks, axes, keys, whole="adapter" in chosen)


def _split(words: Sequence[str]) -> tuple[list[Path], dict[str, list[str]]]:
    folders, chosen = [], dict[str, list[str]]()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            folders.append(Path(word))
        elif key in FILTERS:
            chosen[key] = value.split(",")
        else:
            raise UserError(f"there is no filter {key}; there are {', '.join(FILTERS)}")
    return folders, chosen


def _wanted(chosen: dict[str, list[str]]) -> Wanted:
    known = {kind.tag for kind in catalogue()}
    if unknown := [name for name in chosen.get("measure", ()) if name.partition("[")[0] not in known]:
        raise UserError(f"there is no figure {unknown[0]}; docs/measures.md has them all")
    names = {key: frozenset(chosen[key]) if key in chosen else None for key in NAMES}
    since = chosen.get("since", [""])[-1]
    if since and not DAY.fullmatch(since):
        raise UserError(f"since={since} is no day: write YYYY-MM-DD")
    return Wanted(names["measure"], names["adapter"], names["layout"], names["track"], since)


def _declared(labels: Sequence[str] | None) -> list[str]:
    """The adapters whose declarations are shown: those of the labels, or every framework."""
    known = find_adapters()
    if labels is None:
        return [name for name in sorted(known) if name != "fake"]
    return sorted({name for label in labels for name in known if label.split("@")[0].split("+")[0] == name})


def _keys(name: str) -> list[KeyChange]:
    return key_changes(name) if (find_adapters()[name].folder / KEYS_FILE).exists() else []


def _print(
    found: History, hooks: Sequence[HookFact], axes: Sequence[MapEntry], keys: Sequence[KeyChange], *, whole: bool
) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for head, lines in groupby(found.lines, key=head_of):
        _print_block(head, list(lines), console)
    for reason in found.left_out:
        console.print(f"left out: {reason}", style="dim")
    searched = f"{found.searched} of {len(found.lines)} lines are long enough to be searched for changes"
    console.print(f"{searched}; nothing is ranked")
    _print_declared(hooks, axes, keys, console, whole=whole)


def _print_block(head: str, lines: Sequence[Line], console: Console) -> None:
    console.print(head, style="bold")
    if begins := lines[0].begins:
        console.print(f"  not joined with the line before: {'; '.join(begins)}", style="dim")
    for line in lines:
        shown = line.points[-MOST_POINTS:]
        before = f"({len(line.points) - len(shown)} before) " if len(shown) < len(line.points) else ""
        console.print(f"  {title_of(line)}: {before}{' · '.join(point_words(point, line.unit) for point in shown)}")
        if not line.unsearched:
            console.print(f"    {verdict_of(line)}", style="dim")
        for moved in line.moved:
            console.print(f"    {moved_words(moved, line.unit)}", style="yellow")
        for remark in dict.fromkeys(remark for point in shown for remark in point.corrections):
            console.print(f"    correction of {remark}", style="yellow")
    for reason in sorted({line.unsearched for line in lines if line.unsearched}):
        console.print(f"  {reason}", style="dim")
    console.print()


def _print_declared(
    hooks: Sequence[HookFact], axes: Sequence[MapEntry], keys: Sequence[KeyChange], console: Console, *, whole: bool
) -> None:
    console.print()
    console.print("hook points" if hooks else "hook points: no run tells of any", style="bold")
    for fact in hooks:
        seen = "; ".join(fact.gone) or "all there"
        console.print(f"  {fact.adapter} {fact.version}: {seen} ({fact.date}, {fact.run})")
    if not whole:
        console.print(f"{sum(len(entry.changed) for entry in axes)} changes of axes and {len(keys)} of native keys are")
        console.print("known from the sources of the frameworks: `rlaxes history adapter=NAME` shows one's")
        return
    console.print("axes" if axes else "axes: no change is known", style="bold")
    for entry in axes:
        for former in entry.changed:
            console.print(f"  {entry.adapter} {entry.axis}: {said_before(former)}")
    console.print("native keys" if keys else "native keys: no change is known", style="bold")
    for (framework, version), changes in groupby(keys, key=lambda change: (change.framework, change.version)):
        _print_keys(f"  {framework} {version}: ", list(changes), console)


def _print_keys(head: str, changes: Sequence[KeyChange], console: Console) -> None:
    """One line for each key that means or is called something else, one for all that are new, one for all gone."""
    for change in changes:
        if change.kind in {"renamed", "other meaning"}:
            console.print(f"{head}{change.line()}")
    for kind in ("new", "gone"):
        if names := [f"{one.key} ({one.mode})" if one.mode else one.key for one in changes if one.kind == kind]:
            console.print(f"{head}{kind}: {', '.join(names)}")
    sources = dict.fromkeys(f"{change.source}, {change.date}" for change in changes)
    console.print(f"    {'; '.join(sources)}", style="dim")
