"""The harness side of the verl adapter; imports no framework."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapters.verl.asynchronous.pace import misfit as mode_misfit
from adapters.verl.fidelity import fidelity_rows
from adapters.verl.gpu.overrides import misfit, undriven
from adapters.verl.native import log_shape, native_figures
from adapters.verl.settings import environment, is_cpu, overrides, updates_per_batch, words
from harness.execute.adapter import Fidelity, Launch
from harness.execute.cell import Cell
from harness.task.kinds import kind_of

ENGINES = ("vllm",)


class VerlDriver:
    """See `harness.execute.adapter.Driver`."""

    def render(self, cell: Cell) -> Launch:
        """One process, which starts Ray and all others. `overrides.txt` is for the reader: the process derives the same
        from `cell.json`."""
        text = "\n".join(words(overrides(asdict(cell)))) + "\n"
        return Launch(["python", "-m", "adapters.verl.inside"], environment(asdict(cell)), {"overrides.txt": text})

    def skip(self, cell: Cell) -> str | None:
        """Layouts, engines and splits that verl does not have, or that this machine cannot hold."""
        engine, task = cell.adapter_options.get("engine", "vllm"), cell.task
        if why := mode_misfit(asdict(cell)):
            return why
        if not is_cpu(asdict(cell)) and (why := misfit(asdict(cell)) or undriven(asdict(cell))):
            return why
        if is_cpu(asdict(cell)) and engine not in ENGINES:
            return f"verl has no engine {engine} on a CPU; it has {', '.join(ENGINES)}"
        if kind_of(task["name"]).turns > 1:
            return (
                f"task {task['name']} has several turns; this adapter drives verl's agent loop with one turn a prompt"
            )
        if task["prompts_per_batch"] % task["minibatches"]:
            return "verl cuts minibatches between prompts: task.minibatches has to divide task.prompts_per_batch"
        if task["steps"] % updates_per_batch(task):
            return "verl ends with a whole batch: task.minibatches x task.inner_epochs has to divide task.steps"
        return None

    def fidelity(self, cell: Cell, settings_in_force: dict[str, Any]) -> list[Fidelity]:
        """One row for each task setting."""
        return fidelity_rows(asdict(cell), settings_in_force)

    def native(self, cell_dir: Path) -> list[tuple[int | None, str, float]]:
        """What verl logged of itself."""
        return native_figures(cell_dir, log_shape(asdict(Cell.read(cell_dir))))


driver = VerlDriver()
