"""The verifier of one of verl's reward workers, and the probe that times it."""

import functools
import threading
from pathlib import Path

from adapters.verl.processes import open_probe
from harness.probe import Probe
from harness.task.bundle import Bundle
from harness.task.faulty_verifier import start_verifier
from harness.task.verifier import Verdict, Verifier

PROCESS = "verifier-0"
DEVICE = "verifier"
"""The device label of the verifier's spans."""
_ONE = threading.Lock()
"""verl calls from several threads, the verifier answers one at a time, and what waits is no verification."""


def verdict_on(prompt_id: str, text: str, trace_id: str) -> Verdict:
    """The verdict on one completion."""
    with _ONE:
        probe, verifier = _started()
        with probe.span("verifier", trace_id=trace_id, device=DEVICE) as span:
            span.records = 1
            return verifier.score([(prompt_id, text)])[0]


def stand_ready(*_: object) -> None:
    """Start the verifier, if it has not started. Any reward worker can be asked to."""
    with _ONE:
        _started()


@functools.cache
def _started() -> tuple[Probe, Verifier]:
    probe = open_probe(PROCESS)
    bundle = Bundle.load(Path(probe.cell["bundle"]))
    return probe, start_verifier(probe.cell, bundle)
