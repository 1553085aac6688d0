"""Frameworks and requirements for the tests of `choose`; nothing in them is true of any system."""

import datetime
from typing import Any

from harness.choose.answer import Answer
from harness.choose.asked import Requirements
from harness.choose.choice import Choice, choose
from harness.choose.evidence import Clock, Finding, Framework
from harness.choose.requirements import read_requirements

TODAY = datetime.date(2026, 11, 30)
CLOCK = Clock(TODAY, 180)
RLAXES = {"version": "0.1.0", "commit": "c" * 40, "dirty": False}


def axis(values: list[str], **more: Any) -> dict[str, Any]:
    return {"declared": f"says {values[0]}", "values": values, "source": "a/file.py", "date": "2026-11-29", **more}


def framework(name: str = "one", *findings: Finding, runs: bool = True, **axes: dict[str, Any]) -> Framework:
    spec = {
        "name": name,
        "title": name.title(),
        "version": "2.0",
        "pinned": "2026-11-01",
        "sources": ["https://example.org/one"],
        "layouts": ["colocated_sync", "disaggregated_async"],
        "drills": {"points": {}},
        "axes": axes,
    }
    return Framework(name, spec, runs, list(findings))


def finding(axis_name: str, values: tuple[str, ...] = (), **more: Any) -> Finding:
    told = {"grade": "measured here", "says": "seen", "source": "run (cpu)", "version": "2.0", "date": "2026-11-30"}
    return Finding(axis=axis_name, values=frozenset(values), **(told | more))


def asked(text: str) -> Requirements:
    return read_requirements(f"requirements: {{{text}}}", "file")


def answer(text: str, one: Framework, clock: Clock = CLOCK) -> Answer:
    (found,) = choose(asked(text), [one], clock, RLAXES, []).answers
    return found


def choice(text: str, *frameworks: Framework) -> Choice:
    return choose(asked(text), frameworks, CLOCK, RLAXES, ["a-run"])
