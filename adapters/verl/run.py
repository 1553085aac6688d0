"""The cell's main process: writes the prompts, composes verl's configuration, and runs verl's own `run_ppo`.

The history of the run is written by the process of verl's trainer (`adapters.verl.controller`).
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.verl.asynchronous.pace import mode_of
from adapters.verl.native import log_file
from adapters.verl.settings import SPARE_BATCHES, generated_batches, home, is_cpu, overrides, words
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.probe.scratch import scratch_folder
from harness.task.bundle import Bundle

STARTED_VARIABLE = "RLAXES_STARTED"
"""The environment variable that says when the main process went over to verl, `time.perf_counter_ns()`."""
RESULT = "result.partial.json"
"""What the process of verl's trainer leaves for this one, in verl's folder."""


def run_cell(probe: Probe, started: int, _: ExitStack) -> dict[str, Any]:
    """Run a cell to its end; returns the run in short. `started` is when it began, `time.perf_counter_ns()`."""
    cell = probe.cell
    folder = home(cell)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT).unlink(missing_ok=True)
    write_prompts(cell, folder / "prompts.parquet")
    if is_cpu(cell):
        _name_vllm(folder / "names")
    probe.progress(0, cell["task"]["steps"], "starting Ray")
    start = time.perf_counter()
    now = time.perf_counter_ns()
    probe.add_span("startup", started, now, trace_id="startup")
    os.environ[STARTED_VARIABLE] = str(now)
    # Not among the variables of the launch, which are those of every attempt: verl opens the file anew each time.
    os.environ["VERL_FILE_LOGGER_PATH"] = str(Path(cell["directory"]) / log_file(cell["attempt"]))
    _run(mode_of(cell), words(overrides(cell)), scratch_folder(cell["directory"]))
    if not (folder / RESULT).is_file():
        raise SystemFailure("verl's trainer ended without a result")
    result: dict[str, Any] = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    return result | {"wall_seconds": time.perf_counter() - start}


def write_prompts(cell: Mapping[str, Any], path: Path) -> None:
    """The prompts in the order in which the task takes them, as verl's data set wants them: one epoch is the run.

    `extra_info` rides along to the agent loop and the reward function.
    """
    task, prompts = cell["task"], Bundle.load(Path(cell["bundle"])).prompts
    wanted = (generated_batches(task) + SPARE_BATCHES) * task["prompts_per_batch"]
    rows = [prompts[index % len(prompts)] for index in range(wanted)]
    table = pa.Table.from_pylist(
        [
            {
                "prompt": prompt.messages,
                "data_source": "rlaxes",
                "reward_model": {"style": "rule", "ground_truth": str(prompt.answer)},
                "extra_info": {"index": index, "prompt_id": prompt.prompt_id, "token_ids": list(prompt.token_ids)},
            }
            for index, prompt in enumerate(rows)
        ]
    )
    pq.write_table(table, path)


def _name_vllm(folder: Path) -> None:
    from adapters.verl.cpu.package_name import name_vllm

    if name_vllm(folder) is not None:
        sys.path.append(str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(folder)]).strip(os.pathsep)


def _run(mode: str, settings: list[str], temporary: Path) -> None:
    """verl's own entry point, less its command line. Ray is ended here, whatever happens."""
    import ray
    from verl.trainer.main_ppo import run_ppo

    from adapters.verl.asynchronous.programs import composed, task_runner
    from adapters.verl.ray_start import tell_ports

    config = composed(mode, settings)
    shutil.rmtree(temporary, ignore_errors=True)
    tell_ports()
    try:
        run_ppo(config, task_runner_class=task_runner(mode))
    finally:
        ray.shutdown()
        shutil.rmtree(temporary, ignore_errors=True)
