"""Several simulations of one profile, over lists of values; each may be a job of its own."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cluster.job import Job
from harness.cluster.launchers import launch
from harness.errors import RlaxesError
from harness.execute.machine import usable_cores
from harness.simulate.profiles import overlaps_of, settings_of
from harness.simulate.simulate import simulate

COMMA = re.compile(r",(?![^\[{(]*[\]})])")
"""One that stands in no bracket: there it is part of a value."""
OWN_LIST = "overlap"
"""The one setting whose list is no sweep: it names the cells of a profile."""


@dataclass(frozen=True)
class Point:
    """One simulation of a sweep: its `words`, and of them the settings that differ between points, as written."""

    words: list[str]
    swept: dict[str, str]


@dataclass(frozen=True)
class Told:
    """What a point gave: its figures (`harness.simulate.totals`), or why there are none."""

    point: Point
    figures: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None


def points_of(words: Sequence[str]) -> list[Point]:
    """Every combination of the lists in `key=value,value` words, and of the profile's overlaps.

    Raises:
        UserError: the settings of a point cannot be read; see `settings_of`.
    """
    split = [word.partition("=") for word in words]
    lists = [[value] if key == OWN_LIST else COMMA.split(value) for key, _, value in split]
    swept = [key for (key, _, _), values in zip(split, lists, strict=True) if len(values) > 1]
    points = []
    for values in itertools.product(*lists):
        chosen = {key: value for (key, _, _), value in zip(split, values, strict=True)}
        plain = [f"{key}={value}" if equals else key for (key, equals, _), value in zip(split, values, strict=True)]
        kept = [word for word in plain if not word.startswith(f"{OWN_LIST}=")]
        settings_of(plain)  # what cannot be read is said before anything is simulated
        names = overlaps_of(plain)
        for name in names:
            several = {OWN_LIST: name} if len(names) > 1 else {}
            asked = {key: chosen[key] for key in swept}
            points.append(Point([*kept, *([f"{OWN_LIST}={name}"] if name else [])], several | asked))
    return points


def figures_of(words: list[str]) -> dict[str, Any]:
    """The figures of one point; what a job calls.

    Raises:
        UserError, SystemFailure: as `simulate`.
    """
    (cell,) = settings_of(words)
    return simulate(cell).figures


def run_points(
    points: Sequence[Point], asked: Mapping[str, Any], folder: Path, say: Callable[[str], None]
) -> list[Told]:
    """Simulate every point, here or as jobs; what is refused is told at its point, and the others go on.

    Args:
        asked: the chosen option of `conf/launcher`; on one machine as many run at once as it has cores.
        folder: where the jobs' files go.

    Raises:
        UserError, PrerequisiteError: the launcher cannot be used as asked.
    """
    if asked["plugin"] is None:
        return [_here(point) for point in points]
    jobs = [
        Job(f"point-{number}", f"{__name__}:{figures_of.__name__}", {"words": point.words})
        for number, point in enumerate(points)
    ]
    at_once = usable_cores() if asked["one_machine"] else len(jobs)
    ended = launch(jobs, folder, asked, at_once, say)
    return [Told(point, one.result or {}, one.died) for point, one in zip(points, ended, strict=True)]


def _here(point: Point) -> Told:
    try:
        return Told(point, figures_of(point.words))
    except RlaxesError as error:
        return Told(point, refused=str(error))
