"""What would close an unknown, or put a measurement in the place of a declaration: commands, or why there are none."""

from dataclasses import dataclass

from harness.choose.asked import Requirement
from harness.choose.evidence import Framework
from harness.choose.measured import visible
from harness.choose.topics import TOPICS

AFTERWARDS = "rlaxes publish latest"
"""What comes after each command: `choose` reads published runs alone."""
BY_DEFAULT = {"one_node", "full", "one_shot"}
"""What a run shows that is asked for nothing else."""
DRILLS = {"replaces_workers": "worker_dies"}
"""Values of the axis recovery that another fault than the trainer's death shows."""
LAYOUTS = {"synchronous": "_sync", "colocated": "colocated", "disaggregated": "disaggregated", "asynchronous": "_async"}
"""What the name of a layout has in it that shows a value."""
BY_LEDGER = "the ledger of the run shows it"
BY_DRILL = "the drill's verdict tells each item of the checkpoint"
BY_LOGS = "it is not run here; a log of your own shows what it writes"
NO_LEDGER = "no ledger shows it: to be read in the source at the pin (the notes say where)"
NOT_RUN = "it is not run here: to be read in the source at the pin, or a driver to be written (docs/add_an_adapter.md)"
NOT_DRIVEN = "no setting that its adapter drives asks for it: to be read in the source at the pin"


@dataclass(frozen=True)
class Opening:
    """`command` is what to type, None where nothing that rlaxes runs shows it; `why` says what it shows, or why not."""

    command: str | None
    why: str


def opening_of(framework: Framework, one: Requirement) -> Opening:
    """What would show whether a framework meets a requirement."""
    axis = TOPICS[one.topic].axis
    if one.lag is None and not visible(axis, one.values):
        return Opening(None, NO_LEDGER)
    if not framework.runs:
        logs = f"rlaxes ingest LOG --version {framework.spec['version']}"
        return Opening(logs, BY_LOGS) if axis == "telemetry" else Opening(None, NOT_RUN)
    words = _drill(framework, one) if axis == "recovery" else _compare(framework, one, axis)
    if words is None:
        return Opening(None, NOT_DRIVEN)
    return Opening(words, BY_DRILL if axis == "recovery" else BY_LEDGER)


def _drill(framework: Framework, one: Requirement) -> str | None:
    if "drills" not in framework.spec:
        return None
    fault = next((DRILLS[value] for value in one.values if value in DRILLS), "trainer_dies")
    words = ((framework.spec.get("asked_by") or {}).get("recovery") or {}).get("resume")
    return " ".join(filter(None, ("rlaxes drill", f"adapter={framework.name}", words, f"fault={fault}")))


def _compare(framework: Framework, one: Requirement, axis: str) -> str | None:
    words = _settings(framework, one, axis)
    if words is None:
        return None
    adapter = "" if words.startswith("adapter=") else f"adapter={framework.name} "
    return f"rlaxes compare {adapter}{words}".strip()


def _settings(framework: Framework, one: Requirement, axis: str) -> str | None:
    """The settings that ask for it; None where there are none."""
    if one.lag is not None:
        layout = _layout(framework, "_async" if one.lag else "_sync")
        return layout and f"layout={layout}" + (f" layout.lag_bound={one.lag}" if one.lag else "")
    given = (framework.spec.get("asked_by") or {}).get(axis) or {}
    if words := next((given[value] for value in sorted(one.values) if value in given), None):
        return str(words)
    for value in sorted(one.values):
        if layout := _layout(framework, LAYOUTS[value]) if value in LAYOUTS else None:
            return f"layout={layout}"
    return "" if axis == "telemetry" or one.values & BY_DEFAULT else None


def _layout(framework: Framework, part: str) -> str | None:
    """The first layout of the adapter that has the part in its name."""
    return next((name for name in framework.spec["layouts"] if part in name), None)
