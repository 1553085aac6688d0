"""The bundle's verifier as verl's custom reward function (`reward.custom_reward_function`), in verl's reward worker.

verl loads this file by its path, and once in each of its reward workers.
"""

import functools
import threading
from pathlib import Path
from typing import Any

from adapters.verl.processes import open_probe
from adapters.verl.records import FIELD
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.task.bundle import Bundle
from harness.task.faulty_verifier import start_verifier
from harness.task.verifier import Verifier

PROCESS = "verifier-0"
DEVICE = "verifier"
"""The device label of the verifier's spans."""
_ONE = threading.Lock()
"""verl calls from several threads, the verifier answers one at a time, and what waits is no verification."""


@functools.cache
def _started() -> tuple[Probe, Verifier]:
    probe = open_probe(PROCESS)
    bundle = Bundle.load(Path(probe.cell["bundle"]))
    return probe, start_verifier(probe.cell, bundle)


def compute_score(
    data_source: str,  # noqa: ARG001  (verl's signature)
    solution_str: str,
    ground_truth: str,  # noqa: ARG001
    extra_info: dict[str, Any],
    **_: Any,
) -> dict[str, Any]:
    """The verdict on one completion; its times and components ride along.

    Raises:
        SystemFailure: no verdict could be reached. verl then gives the completion up; it never sees a reward of 0.
    """
    with _ONE:
        probe, verifier = _started()
        where = {"trace_id": extra_info[FIELD]["trace_id"], "device": DEVICE}
        with probe.span("verifier", **where) as span:
            span.records = 1
            verdict = verifier.score([(extra_info["prompt_id"], solution_str)])[0]
    if verdict.status != "ok" or verdict.reward_total is None:
        raise SystemFailure(f"verifier error: {verdict.detail}")
    return {
        "score": verdict.reward_total,
        "rlaxes_components": verdict.components,
        "rlaxes_text": solution_str,
        "t_verify_start": verdict.t_start,
        "t_verify_end": verdict.t_end,
    }
