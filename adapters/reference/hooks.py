"""Where the engines of the reference loop hold on to their libraries, checked against what is installed."""

import importlib.util

from harness.probe.hooks import verify_hooks


def hook_drift() -> list[str]:
    """One message for each place where an installed library no longer is what an engine holds on to."""
    from adapters.reference import engine_transformers

    messages = verify_hooks(engine_transformers.HOOKS)
    if importlib.util.find_spec("vllm") is not None:
        from adapters.reference import engine_vllm

        messages += verify_hooks(engine_vllm.HOOKS)
    return messages
