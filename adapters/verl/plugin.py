"""Loaded by verl in each of its processes (VERL_USE_EXTERNAL_MODULES): registers what is ours where verl looks."""

from types import ModuleType

from adapters.verl.imports import after_import


def _trainers(_: ModuleType) -> None:
    import adapters.verl.asynchronous.v1  # noqa: F401  (registers itself, and the synchronous one)


def _engines(_: ModuleType) -> None:
    import adapters.verl.engine  # noqa: F401  (registers itself)


def _replicas(module: ModuleType) -> None:
    def load() -> type:
        from adapters.verl.server import ProbedVllmReplica

        return ProbedVllmReplica

    module.RolloutReplicaRegistry.register("vllm", load)


after_import("verl.trainer.ppo.v1", _trainers)
after_import("verl.workers.engine.fsdp.transformer_impl", _engines)
after_import("verl.workers.rollout.replica", _replicas)
