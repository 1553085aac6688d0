"""`rlaxes plan simulate` over lists of values: one row a simulation, run here or through a launcher."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.commands.plan_figures import number
from harness.commands.words import print_json, words
from harness.errors import UserError
from harness.execute.compose import compose_choices
from harness.simulate.run_folder import SIMULATED
from harness.simulate.sweep import Told, points_of, run_points

SHOWN = {
    "tokens_per_s": "tokens/s",
    "period_s": "period, s",
    "trainer_busy": "trainer busy",
    "lag_mean": "lag, mean",
    "lag_p95": "p95",
    "ess_sequences": "ESS/n, sequences",
    "overshoot_tokens": "overshoot",
}
"""Of `plan_figures.FIGURES`, what a row has, in few words; `--json` has all."""


def launcher_words(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of the simulation, and those of the launcher."""
    own = [word for word in given if word.split("=")[0].split(".")[0] == "launcher"]
    return [word for word in given if word not in own], own


def is_sweep(given: Sequence[str]) -> bool:
    """Whether a setting has a list of values."""
    return any(set(point.swept) - {"overlap"} for point in points_of(given))


def sweep(given: Sequence[str], launcher: Sequence[str], output: Path) -> list[Told]:
    """Simulate every combination; files of jobs go to a folder of `output`.

    Raises:
        UserError, PrerequisiteError: as `harness.simulate.sweep`.
    """
    asked = compose_choices(launcher)[0].config["launcher"]
    if asked["split"] != "none":
        raise UserError(f"launcher.split={asked['split']}: each simulation of a sweep is a job of its own")
    now = datetime.now(UTC)
    folder = output / f"{now:%Y-%m-%d-%H%M%S}-{secrets.token_hex(2)}-sweep"
    return run_points(points_of(given), asked, folder, lambda text: words.print(text, markup=False, highlight=False))


def tell_sweep(told: Sequence[Told], *, as_json: bool) -> None:
    """A row a simulation: its settings that differ, and its figures or why there are none."""
    if as_json:
        print_json({"points": [_plain(one) for one in told]})
        return
    keys = list(told[0].point.swept)
    table = Table(*keys, *SHOWN.values(), box=None)
    for one in told:
        table.add_row(*(one.point.swept[key] for key in keys), *_figures(one.figures))
    Console(width=120).print(table)
    for one in told:
        if one.refused is not None:
            named = ", ".join(f"{key}={value}" for key, value in one.point.swept.items())
            words.print(f"! {named}: {one.refused}", markup=False, highlight=False, soft_wrap=True)
    Console().print(f"simulated: {SIMULATED.format(ratios='synthetic')}", highlight=False, soft_wrap=True)


def _figures(found: Mapping[str, Any]) -> list[str]:
    return [number(found[key]) if found else "-" for key in SHOWN]


def _plain(one: Told) -> dict[str, Any]:
    return {"swept": one.point.swept, "words": one.point.words, "figures": one.figures, "refused": one.refused}
