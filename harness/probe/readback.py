"""Facts of a run that any torch framework's process reads back from the objects that do its work."""

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from typing import Any


def model_facts(model: Any) -> dict[str, Any]:
    """Sizes of a transformers model, in parameters, bytes and units of its config. `flops_per_token` is 2 N of the
    weights that a token is multiplied with in a forward pass."""
    import torch

    config = model.config.get_text_config()
    heads = config.num_attention_heads
    linear = [module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)]
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "trainable": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "kv_heads": getattr(config, "num_key_value_heads", heads),
        "head_dim": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "vocab": config.vocab_size,
        "bytes": sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()),
        "flops_per_token": 2 * sum(weight.numel() for weight in linear),
    }


def parameter_sha256(model: Any) -> str:
    """SHA-256 over all parameters in the order of their names, as float32 bytes."""
    return tensors_sha256(model.named_parameters())


def tensors_sha256(named: Iterable[tuple[str, Any]]) -> str:
    """SHA-256 over (name, tensor) pairs in the order of their names, as float32 bytes; names are not hashed."""
    total = hashlib.sha256()
    for _, tensor in sorted(named, key=lambda pair: pair[0]):
        total.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def reserved_devices(cell: Mapping[str, Any], accelerators: int) -> int:
    """What rates and costs are divided by: the accelerators that are held, idle ones included [12.2.5]; on a profile
    without one it is 1, for all pools are processes of one host."""
    return 1 if cell["profile"]["device"] == "cpu" else accelerators


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def threads() -> dict[str, Any]:
    """How many threads compute, and what the environment asked for."""
    import torch

    asked = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY")}
    return {
        "torch": torch.get_num_threads(),
        "interop": torch.get_num_interop_threads(),
        "cpus": os.cpu_count(),
        **asked,
    }
