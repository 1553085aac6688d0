"""A history in words, for the terminal and the page."""

from harness.report import format as fmt
from harness.report.history_lines import Line, Moved, Point


def head_of(line: Line) -> str:
    """What lines are of, in a line: those with the same head are of the same cells."""
    cells = (line.adapter, fmt.words(line.layout), fmt.words(line.track))
    return " · ".join((*cells, f"machine {line.machine}", f"settings {line.settings}"))


def title_of(line: Line) -> str:
    """The name of its figure."""
    return f"{line.title}, {fmt.words(line.variant)}" if line.variant else line.title


def point_words(point: Point, unit: str) -> str:
    """A point: its day, value and interval."""
    bounds = fmt.interval(point.value, point.low, point.high, unit)
    differs = " ≠" if point.state == "not comparable" else ""
    return f"{point.date[:10]} {fmt.quantity(point.value, unit)}{differs}" + (f" [{bounds}]" if bounds else "")


def moved_words(moved: Moved, unit: str) -> str:
    """A change of level: where, by how much, and what changed beside it."""
    by = f", {fmt.times(moved.ratio)}" if moved.ratio is not None else ""
    beside = "; ".join(moved.what) or "nothing that is recorded: look at the machine"
    levels = f"{fmt.quantity(moved.before, unit)} -> {fmt.quantity(moved.after, unit)}{by}"
    return f"changed with {moved.run_after} ({moved.date[:10]}): {levels}. Changed beside it: {beside}"


def verdict_of(line: Line) -> str:
    """What the search of a line says, but for the changes that it found."""
    if line.unsearched:
        return line.unsearched
    found = {0: "no change", 1: "one change"}.get(len(line.moved), f"{len(line.moved)} changes")
    if line.detectable is None:
        return found
    return f"{found}; one of {fmt.quantity(line.detectable, 'share')} in the middle is found 4 times in 5"
