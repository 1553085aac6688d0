"""One cell from its first line to its last note."""

import time
from contextlib import ExitStack
from typing import Any

from harness.probe import Probe
from harness.probe.readback import model_facts, parameter_sha256, threads, versions
from harness.task.bundle import Bundle
from harness.task.verifier import Verifier
from plain_loop.loop import ABSENT, Loop


def run_cell(probe: Probe, started: int, stack: ExitStack) -> dict[str, Any]:
    """Run a cell to its end, and write down what it was; returns the run in short."""
    bundle = Bundle.load(probe.cell["bundle"])
    verifier = stack.enter_context(Verifier.start(bundle, probe.cell["task"]["verifier_timeout_s"]))
    probe.progress(0, probe.cell["task"]["steps"], "loading the model")
    loop = Loop(probe, bundle, verifier)
    probe.add_span("startup", started, time.perf_counter_ns(), trace_id="startup")
    window = loop.run()
    notes = {
        "settings": loop.settings(), "versions": versions(("torch", "transformers", "pyarrow")), "threads": threads(),
        "trainer_models": ["temperature"], "model": model_facts(loop.model), "window": window, "device_count": 1,
        "engine": "transformers", "absent_stages": ABSENT, "final_parameter_sha256": parameter_sha256(loop.model),
    }  # fmt: skip
    for key, value in notes.items():
        probe.note(key, value)
    return {"steps": loop.version, "final_parameter_sha256": notes["final_parameter_sha256"]}
