"""The harness side of the TRL adapter; imports no framework."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapters.trl.fidelity import fidelity_rows
from adapters.trl.native import native_figures
from adapters.trl.settings import grpo_arguments, uses_vllm
from harness.execute.adapter import Fidelity, Launch
from harness.execute.cell import Cell
from harness.task.kinds import kind_of

LAYOUTS = ("colocated_sync", "disaggregated_sync")
ENGINES = ("generate", "vllm")


class TrlDriver:
    """See `harness.execute.adapter.Driver`."""

    def render(self, cell: Cell) -> Launch:
        """One process; in the layout `disaggregated_sync` it starts the vLLM server beside it. `grpo_arguments.json`
        is for the reader: the process derives the same from `cell.json`."""
        arguments = json.dumps(grpo_arguments(asdict(cell)), indent=1, sort_keys=True)
        env = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        return Launch(["python", "-m", "adapters.trl.inside"], env, {"grpo_arguments.json": arguments})

    def skip(self, cell: Cell) -> str | None:
        """Layouts and engines that TRL does not have, or that this machine cannot hold."""
        layout, engine = cell.layout["name"], cell.adapter_options.get("engine", "generate")
        if layout not in LAYOUTS:
            return f"TRL's GRPOTrainer has no layout {layout}; it has {', '.join(LAYOUTS)}"
        if engine not in ENGINES:
            return f"TRL has no engine {engine}; it has {', '.join(ENGINES)}"
        if kind_of(cell.task["name"]).turns > 1:
            return f"task {cell.task['name']} has several turns; this adapter drives GRPOTrainer with one turn a prompt"
        if cell.task["group_size"] < 2:
            return "TRL refuses groups of one completion"
        return _missing_device(cell, layout)

    def fidelity(self, cell: Cell, settings_in_force: dict[str, Any]) -> list[Fidelity]:
        """One row for each task setting."""
        return fidelity_rows(asdict(cell), settings_in_force)

    def native(self, cell_dir: Path) -> list[tuple[int | None, str, float]]:
        """What TRL logged of itself."""
        return native_figures(cell_dir)


def _missing_device(cell: Cell, layout: str) -> str | None:
    on_gpu = cell.profile.get("device") == "cuda"
    if uses_vllm(asdict(cell)) and not on_gpu:
        return f"needs a GPU: TRL 1.16.0 drives vLLM's CUDA build only, and the profile {cell.profile['name']} has none"
    if layout == "disaggregated_sync" and cell.profile["devices"] < 2:
        return "needs two GPUs: TRL pushes weights to its vLLM server over NCCL, which joins no two ranks on one device"
    return None


driver = TrlDriver()
