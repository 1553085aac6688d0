"""Low-rank adapters (LoRA, arXiv 2106.09685) by peft, put into the module in place: it keeps its class and its use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from adapters.reference.ranks import whole
from adapters.reference.settings import Lora

ADAPTER = "default"
BASE, LOW = ".base_layer", ".lora_"


def lora_config(lora: Lora) -> Any:
    """peft's `LoraConfig`: every linear layer but the output layer, no dropout. Its `save_pretrained(folder)` writes
    the `adapter_config.json` that an engine wants beside the tensors."""
    from peft import LoraConfig

    return LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules="all-linear", task_type="CAUSAL_LM")


def add_lora(model: Any, lora: Lora, seed: int) -> None:
    """Put adapters into `model`; they alone are trainable then. At first they change nothing: B is zero, A is drawn
    from `seed`, the same in every process."""
    from peft import inject_adapter_in_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(lora_config(lora), model, adapter_name=ADAPTER)


@contextmanager
def adapters_off(model: Any) -> Iterator[None]:
    """Within it, `model` computes as without adapters."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def adapter_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """The adapters' tensors by their names in the module, as they lie on this rank."""
    return ((name, tensor.detach()) for name, tensor in model.named_parameters() if LOW in name)


def peft_name(name: str) -> str:
    """What peft's files, and the engines that read them, call the adapter tensor of that name in the module."""
    return "base_model.model." + name.replace(f".{ADAPTER}.", ".")


def merged_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """All weights by the names that they have without adapters, with `W + scaling B A` where there is an adapter.
    Sharded ones are gathered: every rank has to iterate."""
    for name, parameter in model.named_parameters():
        if LOW in name:
            continue
        tensor = whole(parameter.detach())
        if name.endswith(f"{BASE}.weight"):
            layer = model.get_submodule(name.removesuffix(f"{BASE}.weight"))
            low, high = (whole(part[ADAPTER].weight.detach()) for part in (layer.lora_A, layer.lora_B))
            tensor = tensor + layer.scaling[ADAPTER] * (high @ low)
        yield name.replace(BASE, ""), tensor


def lora_facts(model: Any) -> dict[str, Any]:
    """Rank and alpha, read back from the layers; a rank of 0 where there is no adapter."""
    layers = [module for module in model.modules() if hasattr(module, "lora_A")]
    ranks = {layer.r[ADAPTER] for layer in layers}
    alphas = {layer.lora_alpha[ADAPTER] for layer in layers}
    return {"lora_rank": max(ranks, default=0), "lora_alpha": max(alphas, default=0.0), "lora_layers": len(layers)}
