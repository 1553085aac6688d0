"""The functions of `adapters.openrlhf.cpu.table`: each is given the module that it changes.

What takes a place keeps the signature of what was there, so that drift can still be seen once a patch is in force.
"""

import functools
from typing import Any


def answer_cuda_calls(_: Any) -> None:
    """Let `torch.cuda` answer for the CPU: nothing to wait for, and the device is the CPU."""
    import torch

    torch.cuda.current_device = lambda: torch.device("cpu")
    for name in ("empty_cache", "synchronize", "set_device", "current_stream"):
        setattr(torch.cuda, name, lambda *_, **__: None)


def mesh_on_cpu(module: Any) -> None:
    """The same mesh, of CPU ranks."""
    made = module.init_device_mesh

    @functools.wraps(made)
    def mesh(device_type: str, *args: Any, **kwargs: Any) -> Any:
        del device_type
        return made("cpu", *args, **kwargs)

    module.init_device_mesh = mesh


def plain_adam(module: Any) -> None:
    """Torch's own AdamW in place of DeepSpeed's fused one."""
    made = module.get_train_ds_config

    @functools.wraps(made)
    def config(*args: Any, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = made(*args, **kwargs)
        if "optimizer" in found:
            found["optimizer"]["params"]["torch_adam"] = True
        return found

    module.get_train_ds_config = config


def buffer_on_cpu(module: Any) -> None:
    """The buffer's device is the CPU; its constructor formats a number of a device into a name."""
    import torch

    built = module.NaiveReplayBuffer.__init__

    @functools.wraps(built)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        device = torch.cuda.current_device
        torch.cuda.current_device = lambda: 0
        try:
            built(self, *args, **kwargs)
        finally:
            torch.cuda.current_device = device
        self.target_device = torch.device("cpu")

    module.NaiveReplayBuffer.__init__ = init


class StoreGroup:
    """In place of an NCCL communicator: tensors go through the store of vLLM's group."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def broadcast(self, tensor: Any, src: int, stream: Any = None) -> None:
        """Send `tensor` where this is rank `src`, else receive into it; there is no `stream` to follow."""
        del stream
        sends = self._group.rank == src
        received = self._group.broadcast_obj(tensor.detach().cpu() if sends else None, src)
        if not sends:
            tensor.copy_(received)


def broadcast_by_store(module: Any) -> None:
    """The same group of trainer and engines, without NCCL."""

    def group(master_address: str, master_port: int, rank: int, world_size: int, device: Any) -> StoreGroup:
        from vllm.distributed.utils import StatelessProcessGroup

        del device
        made = StatelessProcessGroup.create(host=master_address, port=master_port, rank=rank, world_size=world_size)
        return StoreGroup(made)

    module.stateless_init_process_group = group


def receive_on_cpu(module: Any) -> None:
    """The same receiver, into a tensor on the CPU."""

    def update_weight(self: Any, name: str, dtype: Any, shape: Any, empty_cache: bool = False) -> None:
        import torch

        del empty_cache
        if dtype != self.model_config.dtype:
            raise RuntimeError(f"the trainer sends {dtype}, the engine holds {self.model_config.dtype}")
        weight = torch.empty(shape, dtype=dtype)
        self._model_update_group.broadcast(weight, src=0)
        self.model_runner.model.load_weights(weights=[(name, weight)])

    module.WorkerWrap.update_weight = update_weight


def leave_linear_unpacked(module: Any) -> None:
    """Every linear layer multiplies with the weights that it holds now, and keeps their loader."""
    import torch

    def dispatch(layer: Any, remove_weight: bool) -> None:
        del remove_weight
        layer.cpu_linear = torch.nn.functional.linear

    module.dispatch_cpu_unquantized_gemm = dispatch


def no_compiled_collectives(module: Any) -> None:
    """Torch's gloo, as for any collective that DeepSpeed has not compiled."""
    module.build_shm_op = lambda: None


def load_in_float32(module: Any) -> None:
    """Weights are loaded in float32, whatever the flag says."""
    import torch

    @functools.wraps(module.convert_to_torch_dtype)
    def dtype(*_: Any, **__: Any) -> Any:
        return torch.float32

    module.convert_to_torch_dtype = dtype


def train_in_float32(module: Any) -> None:
    """DeepSpeed is told of no reduced precision."""
    for name in ("get_train_ds_config", "get_eval_ds_config"):
        setattr(module, name, _in_float32(getattr(module, name)))


def _in_float32(made: Any) -> Any:
    @functools.wraps(made)
    def config(*args: Any, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = made(*args, **kwargs)
        found["bf16"]["enabled"] = found["fp16"]["enabled"] = False
        return found

    return config
