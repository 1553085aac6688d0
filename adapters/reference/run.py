"""Runs a cell: builds its layout's parts, loops, and writes what the run was."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from adapters.reference.absent import TRAINER_MODELS, absent_stages
from adapters.reference.checkpoint_items import Place
from adapters.reference.loop import Outcome, Parts
from adapters.reference.settings import Settings
from harness.probe import Probe
from harness.probe.readback import reserved_devices


class Runnable(Protocol):
    """A loop."""

    def run(self, place: Place) -> Outcome:
        """Run from a place to the last optimizer step."""
        ...


class Facts(Protocol):
    """What only the process that trains can tell."""

    def facts(self) -> dict[str, Any]:
        """See `facts.trainer_facts`."""
        ...

    def digest(self) -> str:
        """SHA-256 of the trained parameters."""
        ...


@dataclass(frozen=True)
class Built:
    """A layout's parts, running, the loop that conducts them, and who can tell of the trainer."""

    parts: Parts
    loop: Runnable
    trainer: Facts
    engine: str
    devices: int


def run_cell(probe: Probe, started: int, stack: ExitStack) -> dict[str, Any]:
    """Run a cell to its end.

    Args:
        started: when the process began (perf_counter_ns).
        stack: closes engines, verifiers and actors.

    Returns:
        the run in short, also for a bare twin.
    """
    settings = Settings.from_cell(probe.cell)
    built = build(settings, probe, stack)
    probe.add_span("startup", started, time.perf_counter_ns(), trace_id="startup", device=settings.device)
    place = built.parts.keeper.restore()
    built.parts.publisher.publish()
    _note_start(probe, settings, built)
    outcome = built.loop.run(place)
    digest = built.trainer.digest()
    _note_end(probe, outcome, digest)
    return {
        "train_seconds": (outcome.t_end - outcome.t_start) / 1e9,
        "final_loss": outcome.final_loss,
        "final_parameter_sha256": digest,
        "steps": settings.steps,
        "observer": probe.enabled,
    }


def build(settings: Settings, probe: Probe, stack: ExitStack) -> Built:
    """The parts of the cell's layout; what runs in another process is imported there only."""
    if settings.layout.startswith("colocated"):
        from adapters.reference.colocated import build_colocated

        return build_colocated(settings, probe, stack)
    from adapters.reference.disaggregated import build_disaggregated

    return build_disaggregated(settings, probe, stack)


def _note_start(probe: Probe, settings: Settings, built: Built) -> None:
    for key, value in built.trainer.facts().items():
        probe.note(key, value)
    probe.note("trainer_models", TRAINER_MODELS)
    probe.note("engine", built.engine)
    probe.note("device_count", reserved_devices(probe.cell, built.devices))
    probe.note("absent_stages", absent_stages(settings))
    probe.flush()


def _note_end(probe: Probe, outcome: Outcome, digest: str) -> None:
    probe.note("final_parameter_sha256", digest)
    probe.note("window", {"t_start": outcome.t_start, "t_end": outcome.t_end})
