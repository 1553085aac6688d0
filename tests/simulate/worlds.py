"""Small simulations for tests."""

from pathlib import Path
from typing import Any

from harness.simulate.profiles import settings_of
from harness.simulate.run_folder import simulate_into
from harness.simulate.settings import Settings
from harness.simulate.simulate import Simulated, simulate

BATCH = "batch={groups: 4, tokens: null, minibatches: 1, inner_epochs: 1}"


def settings(*words: str, overlap: str = "shallow") -> Settings:
    """The smoke profile with words on top."""
    (only,) = settings_of([f"overlap={overlap}", *words])
    return only


def figures(*words: str, overlap: str = "shallow") -> dict[str, Any]:
    """Of one simulation without a ledger."""
    return simulate(settings(*words, overlap=overlap)).figures


def run(folder: Path, *words: str, overlap: str = "shallow") -> tuple[Path, list[Simulated]]:
    """A run folder with one simulated cell."""
    return simulate_into(folder, [settings(*words, overlap=overlap)])
