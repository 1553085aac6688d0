"""The judgements of a run, for people: each system held against its baseline in the measures named in advance."""

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from rich.console import Console

from harness.compare.effect import CONFIDENCE, POWER
from harness.compare.gates import GATES, LEVEL, STATED_MARGIN
from harness.compare.judge import FAR
from harness.compare.judgement import STATES, Judgement
from harness.report import format as fmt
from harness.report.model import ReportModel
from harness.report.views import clean, visible

JUDGED = (
    f"A line says better or worse where both hold: p is below {LEVEL:g} after Holm's correction over all lines of its "
    f"system, and the ratio is past the margin: {100 * STATED_MARGIN:g} %, or what the A/A test showed where that is "
    f"more. It says no change only where the change that is sought ({100 * GATES[0].sought:g} % of a step, "
    f"{100 * GATES[1].sought:g} % of a part of it or of memory) would have been found with a power of "
    f"{100 * POWER:g} % and the {100 * CONFIDENCE:g} % interval holds none as large. Only measures that were named "
    "before anything was measured stand here; all others are described, and have no verdict. The order is that of the "
    "names: nothing is ranked."
)
ALL = "all that is judged"


@dataclass(frozen=True)
class JudgedLine:
    """One judgement as text."""

    system: str
    measure: str
    state: str
    change: str
    detectable: str
    margin: str
    said: str


def baselines(model: ReportModel) -> str:
    """Against what was judged, in words."""
    return ", ".join(sorted({judgement.baseline for judgement in model.judgements}))


def judged_view(model: ReportModel) -> list[JudgedLine]:
    """By system, and within one in the order of the gates; what holds for all of a system alike is one line."""
    lines = []
    for _, group in groupby(model.judgements, key=system_of):
        own = list(group)
        alike = len(own) > 1 and own[0].effect is None and len({(one.state, one.reason) for one in own}) == 1
        lines += [replace(_line(model, own[0]), measure=ALL)] if alike else [_line(model, one) for one in own]
    return lines


def _line(model: ReportModel, found: Judgement) -> JudgedLine:
    return JudgedLine(
        system_of(found),
        measure_of(model, found),
        found.state,
        change_of(found),
        percent(found.detectable),
        percent(found.margin),
        "; ".join(filter(None, [explained(found), found.reason])),
    )


def system_of(found: Judgement) -> str:
    """Whom a judgement is of."""
    return f"{found.adapter} · {fmt.words(found.layout)} · {fmt.words(found.track)}"


def measure_of(model: ReportModel, found: Judgement) -> str:
    """The title of its figure."""
    known = model.definitions.get(found.measure)
    title = known.title if known else fmt.words(found.measure)
    return title + (f", {fmt.words(found.variant)}" if found.variant else "")


def change_of(found: Judgement) -> str:
    """The effect with its interval, e.g. `+12.1 % (+9.1 to +15.2)`; as a ratio where it is more than twofold."""
    if found.effect is None or found.low is None or found.high is None:
        return fmt.NOTHING
    if not 0.5 <= found.effect <= 2:
        return f"{fmt.times(found.effect)} ({fmt.number(found.low)} to {fmt.number(found.high)})"
    change, low, high = (_signed(100 * (ratio - 1)) for ratio in (found.effect, found.low, found.high))
    return f"{change} % ({low} to {high})"


def _signed(number: float) -> str:
    """With its sign, to a tenth."""
    shown = f"{number:+.1f}".replace("-", "−")
    return "0.0" if shown in {"+0.0", "−0.0"} else shown


def percent(share: float | None) -> str:
    """A relative change as `3.1 %`, or as a factor from a doubling on."""
    if share is None:
        return fmt.NOTHING
    if share >= FAR:
        return f"over {1 + FAR:g}×"
    return f"{100 * share:.1f} %" if share < 1 else fmt.times(1 + share)


def verdict_of(found: Judgement) -> str:
    """Its state, with what could have been found beside "no change"."""
    beside = f" (smallest detectable {percent(found.detectable)})" if found.state == "no change" else ""
    return found.state + beside


def explained(found: Judgement) -> str:
    """Which stage a change comes from, e.g. `decode: 83 % of it, +12 ms a step`."""
    if found.explained_by is None:
        return ""
    stage, seconds = fmt.words(found.explained_by.stage), abs(found.explained_by.seconds)
    sign = "+" if found.explained_by.seconds > 0 else "−"
    return f"{stage}: {100 * found.explained_by.share:.0f} % of it, {sign}{fmt.quantity(seconds, 's')} a step"


def null_words(null: dict[str, Any]) -> str:
    """What the A/A test of the run showed; empty where there was none."""
    if not null:
        return ""
    noise = null["noise"]
    said = "not judged" if noise is None else f"{percent(noise)} from run to run in the wall time of a step"
    trouble = null.get("failed") or null.get("stopped")
    tested = f"The A/A test held {null['adapter']} against itself in {null['pairs']} pairs: {said}"
    return f"{tested}; {trouble}." if trouble else f"{tested}."


def print_judgements(model: ReportModel, console: Console) -> None:
    """A line a system, state and reason: what got worse and by how much, down to what could not be told."""
    for system, group in groupby(model.judgements, key=system_of):
        own = list(group)
        console.print(f"{visible(system)} against {own[0].baseline}:", style="bold", markup=False, highlight=False)
        for state in STATES:
            by_reason: dict[str, list[str]] = {}
            for found in own:
                if found.state == state:
                    by_reason.setdefault(found.reason, []).append(_told(model, found))
            for reason, told in by_reason.items():
                words = "; ".join(filter(None, told)) + (f" ({reason})" if reason and told[0] else reason)
                console.print(f"  {state}: {clean(words)}", markup=False, highlight=False)


def _told(model: ReportModel, found: Judgement) -> str:
    """A judgement in a few words without its reason; nothing where the reason says all of it."""
    if found.effect is None and found.state != "cannot tell":
        return ""
    measure = measure_of(model, found)
    told = f"{measure} {change_of(found)}" if found.effect is not None else measure
    if found.state == "no change":
        return f"{told}, smallest detectable {percent(found.detectable)}"
    return f"{told} ({why})" if (why := explained(found)) else told
