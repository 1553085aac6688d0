"""verl's trainer worker with a watch: what a process of it saw, its facts, and the digest of its weights."""

import time
from typing import Any

from verl.single_controller.base.decorator import Dispatch, register
from verl.workers.engine_workers import ActorRolloutRefWorker

from adapters.verl.processes import open_probe
from adapters.verl.watch import Watch
from harness.probe.kept import digest_of
from harness.probe.readback import model_facts, tensors_sha256

PROCESS = "trainer"


class ProbedWorker(ActorRolloutRefWorker):
    """`ActorRolloutRefWorker`, and questions that verl's controller can ask of it."""

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self) -> None:
        """Builds the engines; from then on they are watched."""
        super().init_model()
        self.watch = Watch(open_probe(f"{PROCESS}-{self.rank}"))
        if self.actor is not None:
            self.actor.engine.watch = self.watch

    @register(dispatch_mode=Dispatch.ONE_TO_ALL, blocking=False)
    async def update_weights(self, global_steps: int | None = None, mode: str = "auto") -> Any:
        """Hands the weights over to the rollout engine."""
        start = time.perf_counter_ns()
        with self.watch.span("weight_sync"):
            answer = await super().update_weights(global_steps=global_steps, mode=mode)
        size = self.actor.engine.handed_over_bytes
        self.watch.handed_over({"t_start": start, "t_end": time.perf_counter_ns(), "bytes": size})
        return answer

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def take_records(self, trace_id: str | None = None) -> dict[str, Any]:
        """What was seen since the last call; `trace_id` names what is to come."""
        self.watch.trace_id = trace_id or self.watch.trace_id
        return self.watch.take()

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def read_facts(self) -> dict[str, Any]:
        """Sizes of the model, and what the optimizer and the engine hold."""
        engine = self.actor.engine
        group = engine.optimizer.param_groups[0]
        return {
            "model": model_facts(engine.module),
            "optimizer": type(engine.optimizer).__name__,
            "group": {name: group[name] for name in ("lr", "betas", "eps", "weight_decay")},
            "autocast": str(engine._autocast_dtype).removeprefix("torch."),
            "weights": str(next(engine.module.parameters()).dtype).removeprefix("torch."),
            "checkpointing": bool(getattr(engine.module, "is_gradient_checkpointing", False)),
            "engine": f"{type(engine).__module__}.{type(engine).__qualname__}",
        }

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def digest(self) -> str:
        """SHA-256 over all parameters in the order of their names."""
        return tensors_sha256((name, _whole(p)) for name, p in self.actor.engine.module.named_parameters())

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def held(self) -> dict[str, str]:
        """Digests of the items of a checkpoint that this process holds."""
        import torch

        engine = self.actor.engine
        states = engine.optimizer.state_dict()["state"]
        named = (
            (f"{number:06}.{name}", _whole(value))
            for number, state in states.items()
            for name, value in state.items()
            if isinstance(value, torch.Tensor)
        )
        return {
            "parameters": self.digest(),
            "optimizer": tensors_sha256(named),
            "lr_scheduler": digest_of({key: str(value) for key, value in engine.lr_scheduler.state_dict().items()}),
            "rng": tensors_sha256([("cpu", torch.get_rng_state())]),
        }

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def set_place(self, step: int, version: int, published: int) -> None:
        """verl has loaded a checkpoint: count on from there."""
        self.watch.step, self.watch.version, self.watch.published = step, version, published


def _whole(tensor: Any) -> Any:
    """A sharded tensor with all its shards."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
