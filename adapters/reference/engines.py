"""Picks the engine that a cell asks for; each engine's library is imported only where it is wanted."""

from functools import partial
from typing import Any

from adapters.reference.engine import Engine
from adapters.reference.engine_thread import EngineThread
from adapters.reference.settings import Settings
from harness.probe.hooks import require_hooks, verify_hooks


def make_engine(settings: Settings, model: Any, longest_prompt: int, eos: int, *, shared: bool) -> Engine:
    """The engine, warm: its first requests have been answered, so that the window sees none of its compiling.
    `shared` says that `model` is the trained module itself; elsewhere calls may come from any thread.

    Raises:
        HookDrift: the installed library is not what the engine relies on.
    """
    if settings.engine == "vllm":
        from adapters.reference import engine_vllm

        require_hooks(verify_hooks(engine_vllm.HOOKS))
        make = partial(engine_vllm.VllmEngine, settings, model, longest_prompt, eos)
        return make() if shared else EngineThread(make)
    from adapters.reference import engine_transformers

    require_hooks(verify_hooks(engine_transformers.HOOKS))
    return engine_transformers.TransformersEngine(settings, model, longest_prompt, eos, shared=shared)
