"""The harness side of the reference loop; imports no framework."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapters.reference.fidelity import fidelity_rows
from adapters.reference.native import native_figures
from adapters.reference.regimes import refusal
from adapters.reference.settings import Settings
from harness.execute.adapter import Fidelity, Launch
from harness.execute.cell import Cell
from harness.task.kinds import kind_of

LAYOUTS = ("colocated_sync", "colocated_overlap", "disaggregated_sync", "disaggregated_async")
ENGINES = ("transformers", "vllm")
LOSSES = ("token_mean", "sequence_mean")
STDS = ("group", "none")
VERSIONS = ("one", "turn", "token")
VLLM_HOTTEST = 2.0


class ReferenceDriver:
    """See `harness.execute.adapter.Driver`."""

    def render(self, cell: Cell) -> Launch:
        """One process, which reads `cell.json`."""
        return Launch(["python", "-m", "adapters.reference.inside"], {"HF_HUB_OFFLINE": "1"})

    def skip(self, cell: Cell) -> str | None:
        """What this loop cannot do, each thing named."""
        task, options = cell.task, cell.adapter_options
        asked = (
            ("layout", cell.layout["name"], LAYOUTS),
            ("engine", options["engine"], ENGINES),
            ("versions", options["versions"], VERSIONS),
            ("precision", task["precision"], ("float32",)),
            ("lr_schedule", task["lr_schedule"], ("constant",)),
            ("loss", task["loss"], LOSSES),
            ("advantage_std", task["advantage_std"], STDS),
        )
        for name, value, known in asked:
            if value not in known:
                return f"the reference loop has no {name} {value}; it has {', '.join(known)}"
        if task["advantage_std"] == "group" and task["group_size"] <= task["std_ddof"]:
            return f"a group of {task['group_size']} has no standard deviation with std_ddof={task['std_ddof']}"
        if task["group_size"] < 2:
            return "a group of one has nothing to be compared with"
        if kind_of(task["name"]).turns > 1 and cell.track == "fixed_length":
            return f"{task['name']} has turns, which end with EOS: on the fixed-length track none ends"
        if options["engine"] == "vllm" and task["temperature"] > VLLM_HOTTEST:
            return f"vLLM takes no temperature above {VLLM_HOTTEST:g}"
        return _unbroken(cell) or refusal(Settings.from_cell(asdict(cell)))

    def fidelity(self, cell: Cell, settings_in_force: dict[str, Any]) -> list[Fidelity]:
        """One row for each task setting, and one for the track."""
        return fidelity_rows(asdict(cell), settings_in_force)

    def native(self, cell_dir: Path) -> list[tuple[int | None, str, float]]:
        """None of its own."""
        return native_figures(cell_dir)


def _unbroken(cell: Cell) -> str | None:
    """A publication that moves no tensors can reach nobody corrupted, and nobody dies of it."""
    shared = cell.layout["name"].startswith("colocated") and cell.adapter_options["engine"] == "transformers"
    points = [fault["point"] for fault in cell.fault.get("faults", ()) if fault["point"].startswith("publication.")]
    if not shared or not points:
        return None
    return f"{points[0]} never comes: the embedded engine holds the trained module itself, a publication moves nothing"


driver = ReferenceDriver()
