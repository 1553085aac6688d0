"""The drills of a run, for people: what was done to each cell, whether it continues, and the evidence."""

from typing import Any

from rich.console import Console

from harness.report import format as fmt
from harness.report.model import ReportModel
from harness.report.views import visible

MARKS = {True: "continued", False: "did not continue", None: "could not be told"}

STYLES = {True: "bold", False: "bold red", None: "bold yellow"}


def title_of(verdict: dict[str, Any]) -> str:
    """A drilled cell in a few words."""
    system, _, _ = verdict["adapter"].partition("+")
    place = [system, fmt.words(verdict["layout"]), fmt.words(verdict["fault"])]
    return " · ".join([*place, f"repeat {verdict['repeat']}"] if verdict["repeat"] else place)


def counts_of(model: ReportModel) -> str:
    """How the drills went, e.g. `2 drills: 1 continued, 1 did not continue`; empty where there are none."""
    found = [MARKS[verdict["continues"]] for verdict in model.verdicts]
    if not found:
        return ""
    words = ", ".join(f"{found.count(mark)} {mark}" for mark in MARKS.values() if mark in found)
    return f"{len(found)} drill{'s' if len(found) > 1 else ''}: {words}"


def items_of(verdict: dict[str, Any]) -> str:
    """What the restarts found of the items of step 12.5.1, e.g. `rng restarted, 12 restored`; a dash where nothing was
    restored from."""
    if not verdict["items"]:
        return fmt.NOTHING
    off = [f"{fmt.words(item['item'])} {item['state']}" for item in verdict["items"] if item["state"] != "restored"]
    kept = len(verdict["items"]) - len(off)
    return ", ".join([*dict.fromkeys(off), *([f"{kept} restored"] if kept else [])])


def print_drills(model: ReportModel, console: Console) -> None:
    """A few lines a drill: the verdict, what is broken or unknown, what it cost, and where the history differs."""

    def line(text: str, style: str = "") -> None:
        console.print(visible(text), markup=False, highlight=False, style=style, soft_wrap=True)

    for verdict in model.verdicts:
        line(f"{title_of(verdict)}: {verdict['word']}", STYLES[verdict["continues"]])
        for check in verdict["checks"]:
            if check["result"] in {"broken", "unknown"}:
                line(f"  {check['result']}: {check['name']}: {check['said']}")
        if verdict["items"]:
            line(f"  items: {items_of(verdict)}", "dim")
        line(f"  cost: {verdict['cost']}", "dim")
        line(f"  history: {verdict['apart']}", "dim")


def ending(attempt: dict[str, Any]) -> str:
    """How an attempt ended."""
    return f"{attempt['status']} after {fmt.quantity(attempt['wall_s'], 's')}" + (
        f": {attempt['reason']}" if attempt["reason"] else ""
    )
