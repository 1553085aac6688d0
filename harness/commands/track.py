"""`rlaxes track`: did the new version get slower, or larger?"""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from harness.commands.exit_codes import exit_code
from harness.commands.null_test import judge_null
from harness.commands.runs import ShowConfig, show_configs
from harness.commands.words import EXIT_FINE, EXIT_REGRESSION, AsJson, Overrides, one_line_errors, print_json, words
from harness.compare.gates import STEP
from harness.compare.judgement import Judgement
from harness.execute.session import run_session
from harness.execute.tracking import Tracked, drifted_hooks, tracked
from harness.execute.version import Version
from harness.execute.versions import differing_packages
from harness.report.judgements import judged_view, null_words
from harness.report.model import ReportModel

VERSION = "A release (1.16.0), git:REF, git+URL@REF, the path of a lock; of reference and fake: a git revision."
SHOWN_PACKAGES = 8
ENDINGS = ("no change as large as the one sought, or better", "it got worse", "cannot tell", "could not be measured")
CRASHED = "the candidate failed where the pin did not"


@one_line_errors
def track(
    pin: Annotated[str, typer.Option(help=f"The version that is in use. {VERSION}")],
    candidate: Annotated[str, typer.Option(help="The version that is held against it, in the same words.")],
    overrides: Overrides = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--with", help="A requirement for both, e.g. what a release imports and forgot to ask for."),
    ] = None,
    cfg: ShowConfig = False,
    as_json: AsJson = False,
) -> None:
    """Measure two versions of an adapter in turns on this machine, and judge the second against the first. Ends with 0
    (no worse), 1 (worse), 2 (cannot tell), 3 (could not be measured) or 4 (usage); resumes what was interrupted."""
    asked = tracked(overrides or [], pin, candidate, _say, also or [])
    if cfg:
        show_configs({choice.label: choice.config for choice in asked.choices}, as_json=as_json)
        return
    told = _sides(asked)
    _print_sides(asked, told)
    if asked.same:
        told |= {"note": f"no change: the two are the same (hash {asked.pin.hash[:12]})", "exit": EXIT_FINE}
    elif drift := drifted_hooks(asked, _say):
        told |= _unmeasured(asked, drift)
    else:
        told |= _measured(asked, as_json=as_json)
    if as_json:
        print_json(told)
    else:
        _print_end(told)
    if told["exit"]:
        raise typer.Exit(told["exit"])


def _say(text: str) -> None:
    words.print(text, markup=False, highlight=False, soft_wrap=True)


def _sides(asked: Tracked) -> dict[str, Any]:
    """What is known before anything runs, with every key that `--json` prints."""
    labels = asked.labels
    return {
        "pin": _side(asked.pin, labels[0]),
        "candidate": _side(asked.candidate, labels[1]),
        "packages": differing_packages(asked.pin, asked.candidate),
        "judgements": [],
        "explained_by": [],
        "hook_drift": {},
        "run": None,
        "note": None,
    }


def _side(version: Version, label: str) -> dict[str, Any]:
    return {"label": label, **version.as_dict()}


def _print_sides(asked: Tracked, told: dict[str, Any]) -> None:
    for role, version in (("pin", asked.pin), ("candidate", asked.candidate)):
        held = f", lock {version.lock}" if version.lock else ""
        _say(f"{role}: {told[role]['label']} ({version.release}){held}")
        if version.unhashed:
            _say(f"  not held by hash: {version.unhashed}")
    rows = told["packages"]
    if rows:
        named = [f"{row['package']} {row['pin'] or 'none'} -> {row['candidate'] or 'none'}" for row in rows]
        more = f", and {len(rows) - SHOWN_PACKAGES} more" if len(rows) > SHOWN_PACKAGES else ""
        _say(f"packages that differ: {', '.join(named[:SHOWN_PACKAGES])}{more}")


def _unmeasured(asked: Tracked, drift: dict[str, list[str]]) -> dict[str, Any]:
    """The end where a version lacks what the adapter holds on to: nothing is measured, and each gate says why."""
    said = "; ".join(f"{label}: {message}" for label, messages in drift.items() for message in messages)
    places = dict.fromkeys((c.config["layout"]["name"], c.config["track"]["name"]) for c in asked.choices)
    pin, candidate = asked.labels
    found = [
        Judgement(candidate, pin, *place, STEP, "", "s", "lower", "failed", reason=said, cause="harness")
        for place in places
    ]
    return _judged(found) | {"hook_drift": drift, "note": said}


def _measured(asked: Tracked, *, as_json: bool) -> dict[str, Any]:
    from harness.report.build import build_report  # draws, as `compare` does

    run = run_session(asked.choices, words, judge_null=judge_null)
    words.print("measuring and writing the report", highlight=False)
    model = build_report(run)
    if not as_json:
        _print_table(model)
    drift = {
        label: sorted({cell["reason"] for cell in model.cells if cell["adapter"] == label and _drifted(cell)})
        for label in asked.labels
    }
    found = {label: reasons for label, reasons in drift.items() if reasons}
    return _judged(model.judgements) | {"hook_drift": found, "run": str(run)}


def _drifted(cell: dict[str, Any]) -> bool:
    """Whether a cell ended because the framework returned something else than the adapter holds on to."""
    return cell["status"] == "failed" and "HookDrift" in (cell["reason"] or "")


def _judged(judgements: Sequence[Judgement]) -> dict[str, Any]:
    worse = [found for found in judgements if found.state == "worse" and found.explained_by]
    explained = [
        {"layout": found.layout, "track": found.track, "measure": found.name, **vars(found.explained_by)}
        for found in worse
    ]
    told = [found.as_dict() for found in judgements]
    return {"judgements": told, "explained_by": explained, "exit": exit_code(judgements)}


def _print_table(model: ReportModel) -> None:
    """A line a measure, and below what there is to know beside it, once each."""
    table = Table("", "state", "change (95 % interval)", "detectable", "margin", box=None)
    notes: dict[str, list[str]] = {}
    lines = judged_view(model)
    several = len({line.system for line in lines}) > 1
    for line in lines:
        place = f" ({line.system.partition(' · ')[2]})" if several else ""
        table.add_row(line.measure + place, line.state, line.change, line.detectable, line.margin)
        if line.said:
            notes.setdefault(line.said, []).append(line.measure + place)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(table)
    for said, measures in notes.items():
        console.print(f"{'; '.join(measures)}: {said}")
    if said := null_words(model.null_test):
        console.print(said)


def _print_end(told: dict[str, Any]) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for label, messages in told["hook_drift"].items():
        console.print(f"{label}: " + f"\n{label}: ".join(messages))
    if told["note"] and not told["hook_drift"]:
        console.print(told["note"])
    for stage in dict.fromkeys(found["stage"] for found in told["explained_by"]):
        measures = [found["measure"] for found in told["explained_by"] if found["stage"] == stage]
        console.print(f"got worse in {stage}: {', '.join(dict.fromkeys(measures))}")
    if told["run"]:
        console.print(f"{told['run']}/report.html")
    if told["judgements"]:
        worse = any(found["state"] == "worse" for found in told["judgements"])
        crashed = told["exit"] == EXIT_REGRESSION and not worse
        console.print(f"exit {told['exit']}: {CRASHED if crashed else ENDINGS[told['exit']]}")
