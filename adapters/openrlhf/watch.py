"""The functions of `table.WATCHED`: they call OpenRLHF's own and tell the controller's or the trainer's side."""

import time
from functools import cache
from typing import Any

from adapters.openrlhf.cellfile import this_cell
from adapters.openrlhf.controller import PUT, Controller
from adapters.openrlhf.records import trace_of
from adapters.openrlhf.wrap import wrap, wrap_with_actors
from harness.probe import Probe

STARTED = time.perf_counter_ns()
_sides: dict[str, Any] = {}
"""The side that this process has: `controller` or `trainer`; none in any other."""


@cache
def _collector_probe() -> Probe:
    """Of the process that asks the engines: the controller's where the loop is synchronous."""
    side = _sides.get("controller")
    return side.probe if side else Probe(this_cell(), "collector")


# The controller


def watch_controller(module: Any) -> None:
    """See `table`."""
    base = module.BasePPOTrainer
    wrap(base, "__init__", _controller_built)
    wrap_with_actors(module, base, "init_checkpoint_states", _loop_begins)
    wrap_with_actors(module, base, "train_step", _train_step)
    wrap_with_actors(module, base, "ppo_train", _ppo_train)
    wrap_with_actors(module, base, "broadcast_to_vllm", _broadcast)
    wrap_with_actors(module, base, "save_logs_and_checkpoints", _logged)


def _controller_built(call: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    call(self, *args, **kwargs)
    side = _sides["controller"] = Controller(STARTED)
    side.engines = len(self.vllm_engines)


def _loop_begins(call: Any, self: Any) -> Any:
    states = call(self)
    side: Controller = _sides["controller"]
    if hasattr(self, "rollout_queue"):
        self.rollout_queue = WatchedQueue(self.rollout_queue, side)
    side.begins(self.args, states)
    return states


class WatchedQueue:
    """Ray's queue, with the time known that a batch was waited for."""

    def __init__(self, queue: Any, side: Controller) -> None:
        self._queue, self._side = queue, side

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """As Ray's."""
        start = time.perf_counter_ns()
        found = self._queue.get(*args, **kwargs)
        self._side.waits(start)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


def _train_step(call: Any, self: Any, rollout_samples: Any, global_step: int) -> Any:
    _sides["controller"].takes(rollout_samples)
    return call(self, rollout_samples, global_step)


def _ppo_train(call: Any, self: Any, global_steps: int) -> Any:
    side: Controller = _sides["controller"]
    side.assembled()
    status = call(self, global_steps)
    side.trained(status)
    return status


def _broadcast(call: Any, self: Any) -> None:
    _sides["controller"].broadcast(lambda: call(self))


def _logged(call: Any, self: Any, global_step: int, *args: Any, **kwargs: Any) -> None:
    side, start = _sides["controller"], time.perf_counter_ns()
    call(self, global_step, *args, **kwargs)
    if global_step % self.args.ckpt.save_steps == 0:
        side.saved(f"global_step{global_step}", start)
    side.step_ended()


def watch_experiences(module: Any) -> None:
    """See `table`."""
    wrap(module.RemoteExperienceMaker, "make_experience", _make_experience)
    wrap(module.RemoteExperienceMaker, "compute_advantages_and_returns", _advantages)


def _make_experience(call: Any, self: Any, samples_list: Any) -> Any:
    _sides["controller"].assembled()
    return call(self, samples_list)


def _advantages(call: Any, self: Any, experiences: Any) -> Any:
    side: Controller = _sides["controller"]
    side.assembles()
    found = call(self, experiences)
    side.advantages(found)
    return found


def watch_generator(module: Any) -> None:
    """See `table`."""
    wrap(module.SamplesGenerator, "generate_samples", _generate_samples)
    wrap(module.SamplesGenerator, "_dispatch_prompts_to_vllm", _dispatch)


def _generate_samples(call: Any, self: Any, **kwargs: Any) -> Any:
    found = call(self, **kwargs)
    samples, exhausted = found[0], found[3]
    if samples:
        setattr(samples[0], PUT, time.perf_counter_ns())
    if exhausted and "controller" not in _sides:
        _collector_probe().close()
    return found


def _dispatch(call: Any, self: Any, prompts: Any, labels: Any, **kwargs: Any) -> Any:
    start = time.perf_counter_ns()
    found = call(self, prompts, labels, **kwargs)
    cell = this_cell()
    trace_id = trace_of(int(labels[0]) // cell["task"]["prompts_per_batch"], cell["attempt"])
    _collector_probe().add_span("prompt_prep", start, time.perf_counter_ns(), trace_id=trace_id, records=len(prompts))
    return found


# The trainer


def watch_trainer(module: Any) -> None:
    """See `table`."""
    stepper = module.ActorPPOTrainer
    wrap(stepper, "__init__", _trainer_built)
    wrap(stepper, "training_step", _training_step)
    wrap(stepper, "ppo_train", _rank_trains)
    wrap(stepper, "broadcast_to_vllm", _rank_broadcasts)


def _trainer_built(call: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    from adapters.openrlhf.training import TrainerSide

    call(self, *args, **kwargs)
    side = _sides["trainer"] = TrainerSide(STARTED)
    side.attach(self, _restores)


def _training_step(call: Any, self: Any, experience: Any, *args: Any, **kwargs: Any) -> Any:
    _sides["trainer"].micro_begins(experience)
    return call(self, experience, *args, **kwargs)


def _rank_trains(call: Any, self: Any, kl_ctl: float) -> Any:
    status = call(self, kl_ctl)
    return {**status, **_sides["trainer"].records()}


def _rank_broadcasts(call: Any, self: Any) -> None:
    side, start = _sides["trainer"], time.perf_counter_ns()
    call(self)
    side.span("weight_sync", start)
    side.probe.flush()


def watch_strategy(module: Any) -> None:
    """See `table`."""
    strategy = module.DeepspeedStrategy
    wrap(strategy, "optimizer_step", _optimizer_step)
    wrap(strategy, "save_model", _save_model)
    wrap(strategy, "save_ckpt", _save_checkpoint)
    wrap(strategy, "load_ckpt", _load_checkpoint)


def _optimizer_step(call: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    _sides["trainer"].optimizer_step(lambda: call(self, *args, **kwargs))


def _save_model(call: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    call(self, *args, **kwargs)
    _sides["trainer"].close()


_restores: list[tuple[int, int]] = []
"""When a checkpoint was loaded in this process (perf_counter_ns), which comes before the trainer is built."""


def _save_checkpoint(call: Any, self: Any, model: Any, save_dir: str, tag: str, *args: Any, **kwargs: Any) -> None:
    side, start = _sides["trainer"], time.perf_counter_ns()
    call(self, model, save_dir, tag, *args, **kwargs)
    side.span("checkpoint", start)
    side.saved(tag)


def _load_checkpoint(call: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    start = time.perf_counter_ns()
    found = call(self, *args, **kwargs)
    _restores.append((start, time.perf_counter_ns()))
    return found


def watch_calls(module: Any) -> None:
    """See `table`."""
    wrap(module.BaseModelActor, "execute_batch", _execute_batch)


def _execute_batch(call: Any, self: Any, method_name: str, all_data: Any, start_idx: int, end_idx: int) -> Any:
    side, start = _sides.get("trainer"), time.perf_counter_ns()
    found = call(self, method_name, all_data, start_idx, end_idx)
    if side is not None:
        side.span(STAGE_OF_CALL[method_name], start, records=end_idx - start_idx)
    return found


STAGE_OF_CALL = {"forward": "logprob_recompute", "append": "batch_assembly"}
"""What a call of many experiences to the policy actor is."""
