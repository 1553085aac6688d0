"""Runs a cell: starts Ray, and in it OpenRLHF's own command line, with our plug-in and our patches in every process."""

import json
import os
import runpy
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from adapters.openrlhf.checkpoints import choose
from adapters.openrlhf.cluster import ray_running
from adapters.openrlhf.flags import Files, argv_of, flags_of
from adapters.openrlhf.gpu.prerequisites import check_prerequisites
from adapters.openrlhf.hooks import check_hooks, patches_of
from adapters.openrlhf.imports import VARIABLE, in_force, install
from adapters.openrlhf.parser import MODULE, check_flags, resolve
from adapters.openrlhf.pins import LOOP
from adapters.openrlhf.rollouts import FINISH
from adapters.openrlhf.settings import folder, generated_batches, prompt_file
from adapters.openrlhf.shape import on_gpu, shape_of
from harness.probe import Probe
from harness.probe.kept import FOLDER as KEPT
from harness.probe.kept import newest
from harness.probe.readback import tensors_sha256
from harness.task.bundle import Bundle

HERE = Path(__file__).resolve().parent
STAND_IN = str(HERE / "cpu" / "stand_in")
CLOSING_SECONDS = 60.0
CPU_ENVIRONMENT = {
    "DS_ACCELERATOR": "cpu",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # In the engine core's own process: a worker process of its own would only take longer to start.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


def run_cell(probe: Probe, started: int, stack: ExitStack) -> dict[str, Any]:
    """Run a cell to its end.

    Returns:
        the run in short, also for a bare twin.
    """
    cell = probe.cell
    bundle = Bundle.load(Path(cell["bundle"]))
    if cell["attempt"] == 0:  # whatever lies there is another run's
        for leavings in (folder(cell), Path(cell["directory"]) / KEPT):
            shutil.rmtree(leavings, ignore_errors=True)
    files = _files(cell, bundle)
    set_environment(cell, watched=probe.enabled)
    install()
    words = _words(cell, files)
    total = cell["task"]["steps"]
    probe.progress(0, total, "starting Ray")
    shape = shape_of(cell)
    stack.enter_context(ray_running(cell, shape, shape.trainers + shape.engines * shape.engine_parallel))
    probe.add_span("startup", started, time.perf_counter_ns(), trace_id="startup")
    probe.progress(0, total, "Ray runs, OpenRLHF builds its actors")
    sys.argv = [MODULE, *words]
    probe.note("argv", words)
    probe.flush()
    check_hooks(patches_of(cell, watched=probe.enabled))
    runpy.run_module(MODULE, run_name="__main__")
    _close_engines()
    digest = _digest(folder(cell) / "final")
    probe.note("final_parameter_sha256", digest)
    loop = json.loads((folder(cell) / LOOP).read_text(encoding="utf-8"))
    return {
        "train_seconds": (loop["t_end"] - loop["t_start"]) / 1e9,
        "final_parameter_sha256": digest,
        "steps": total,
        "observer": probe.enabled,
    }


def _words(cell: dict[str, Any], files: Files) -> list[str]:
    """The command line, once the installed OpenRLHF was found to have each flag and to take their values.

    Raises:
        Drift: it has no such flag any more.
        Refused: it does not take them, with its own words.
        PrerequisiteError: this is a run on GPUs, and what their lock cannot hold is not installed.
    """
    if on_gpu(cell):
        check_prerequisites()
    flags = flags_of(cell, files) | {"ckpt.load_enable": choose(cell, newest(cell))}
    check_flags(flags)
    words = argv_of(flags)
    resolve(words)
    return words


def set_environment(cell: dict[str, Any], *, watched: bool) -> None:
    """What every process of the cell inherits: which patches are in force, and where they are found."""
    cpu = not on_gpu(cell)
    paths = [str(HERE / "startup")]
    if cpu:
        os.environ.update(CPU_ENVIRONMENT)
        paths += [STAND_IN]
        sys.path.append(STAND_IN)
    os.environ[VARIABLE] = in_force(patches_of(cell, watched=watched))
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ["PYTHONPATH"]])


def _files(cell: dict[str, Any], bundle: Bundle) -> Files:
    """The data set: the bundle's prompts in the order in which the task takes them, round again where they end."""
    task, prompts = cell["task"], bundle.prompts
    rows = generated_batches(task) * task["prompts_per_batch"]
    chosen = [prompts[row % len(prompts)] for row in range(rows)]
    lines = [
        json.dumps({"input": prompt.text, "label": str(row), "prompt_id": prompt.prompt_id})
        for row, prompt in enumerate(chosen)
    ]
    path = prompt_file(cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    longest = max(len(prompt.token_ids) for prompt in chosen)
    return Files(bundle.model_dir, path, rows, longest, HERE / "agent.py")


def _close_engines() -> None:
    """Tell our plug-in in each engine's actor that training has ended: OpenRLHF just lets them go."""
    import ray
    from openrlhf.trainer.ray import vllm_engine

    asked = [
        engine.generate_responses.remote(FINISH, "", None, 0, None, num_samples=1)
        for engine in vllm_engine.RolloutRayActor.made
    ]
    ray.get(asked, timeout=CLOSING_SECONDS)


def _digest(model: Path) -> str:
    from safetensors import safe_open

    with safe_open(model / "model.safetensors", framework="pt") as file:
        return tensors_sha256((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118 (no mapping)
