"""The functions of `table.PINNED`: what is the same in every run of ours, watched or bare."""

import inspect
import json
import time
from collections.abc import Callable
from typing import Any

from adapters.openrlhf.cellfile import this_cell
from adapters.openrlhf.settings import computes_in_float32, folder, updates_per_batch
from adapters.openrlhf.wrap import wrap, wrap_with_actors
from harness.probe import Probe

LOOP = "loop.json"
CACHE_BYTES = 1 << 28
"""vLLM would take a share of all memory, half of this machine's on a CPU."""


def keep_prompt_order(module: Any) -> None:
    """Prompts come in the order of the data set."""

    def in_order(setup: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(setup).bind(self, *args, **kwargs)
        given.arguments["shuffle"] = False
        return setup(*given.args, **given.kwargs)

    wrap(module.DeepspeedStrategy, "setup_dataloader", in_order)


class EngineActors:
    """In place of OpenRLHF's Ray class of engines: made as ever, with some of vLLM's arguments added. `added` is asked
    when an engine is made: a check of the hooks imports the module with no cell to ask."""

    def __init__(self, actors: Any, added: Callable[[], dict[str, Any]]) -> None:
        self._actors, self._added = actors, added
        self.made: list[Any] = []

    def options(self, **options: Any) -> "EngineActors":
        """As Ray's."""
        self._options = options
        return self

    def remote(self, **arguments: Any) -> Any:
        """As Ray's."""
        self.made.append(self._actors.options(**self._options).remote(**{**arguments, **self._added()}))
        return self.made[-1]


def give_engine_arguments(module: Any) -> None:
    """Engines are made with `engine_arguments`; those that were made are known to the process that made them."""
    module.RolloutRayActor = EngineActors(module.RolloutRayActor, lambda: engine_arguments(this_cell()))


def engine_arguments(cell: dict[str, Any]) -> dict[str, Any]:
    """What vLLM is told beside what OpenRLHF tells it."""
    added: dict[str, Any] = {"logprobs_mode": "processed_logprobs", "max_logprobs": 1, "generation_config": "vllm"}
    if cell["profile"]["device"] == "cpu":
        added |= {"kv_cache_memory_bytes": CACHE_BYTES}
    return added | ({"dtype": "float32"} if computes_in_float32(cell) else {})


_times: dict[str, int] = {}


def time_loop(module: Any) -> None:
    """Write when the loop began and when its last turn ended, and tell the harness how far it is."""
    wrap_with_actors(module, module.BasePPOTrainer, "init_checkpoint_states", _begins)
    wrap_with_actors(module, module.BasePPOTrainer, "save_logs_and_checkpoints", _turn_ended)


def _begins(call: Any, self: Any) -> Any:
    states = call(self)
    _times["t_start"] = time.perf_counter_ns()
    return states


def _turn_ended(call: Any, self: Any, global_step: int, *args: Any, **kwargs: Any) -> None:
    call(self, global_step, *args, **kwargs)
    if self.tensorboard_logger is not None:  # it would write every two minutes, and a killed attempt would lose it
        self.tensorboard_logger.writer.flush()
    cell = this_cell()
    _times["t_end"] = time.perf_counter_ns()
    (folder(cell) / LOOP).write_text(json.dumps(_times), encoding="utf-8")
    done, total = global_step * updates_per_batch(cell["task"]), cell["task"]["steps"]
    Probe(cell, enabled=False).progress(done, total, f"optimizer step {done} of {total}")
