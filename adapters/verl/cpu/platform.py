"""A platform without an accelerator, in verl's own registry of platforms (verl/plugin/platform)."""

import os
import resource
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

from harness.probe.memory import pss_bytes

NAME = "cpu"


class CpuDevice(types.ModuleType):
    """`torch.cpu`, and what of `torch.cuda` verl calls on whatever its platform names as the device's module.

    What counts a device's memory answers for this process: what it holds, and the most that it held.
    """

    def __init__(self) -> None:
        super().__init__("rlaxes_cpu_device")

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def is_available(self) -> bool:
        """There is always a CPU."""
        return True

    def device_count(self) -> int:
        """Each process has the one."""
        return 1

    def current_device(self) -> torch.device:
        """verl moves tensors to whatever this returns."""
        return torch.device("cpu")

    def set_device(self, *_: Any) -> None:
        """Nothing to choose."""

    def get_device_name(self, *_: Any) -> str:
        """verl looks the peak rate up by this name, and takes any CPU for one of 448 GFLOP/s."""
        return "CPU"

    def empty_cache(self) -> None:
        """The allocator of the C library caches nothing that could be given back by name."""

    def ipc_collect(self) -> None:
        """No handles are shared."""

    def synchronize(self, *_: Any) -> None:
        """Operations have ended when they return."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self, *_: Any) -> torch.Tensor:
        """torch's own state."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *_: Any) -> None:
        """Set torch's own state."""
        torch.set_rng_state(state)

    def memory_allocated(self, *_: Any) -> int:
        """Bytes that this process holds now."""
        return pss_bytes(os.getpid()) or 0

    memory_reserved = memory_allocated

    def max_memory_allocated(self, *_: Any) -> int:
        """Bytes, the most that this process held."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    max_memory_reserved = max_memory_allocated

    def reset_peak_memory_stats(self, *_: Any) -> None:
        """The kernel's count of the peak cannot be reset."""

    def set_per_process_memory_fraction(self, *_: Any) -> None:
        """Nothing to divide."""

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        """(free, all) bytes of the host."""
        memory = psutil.virtual_memory()
        return memory.available, memory.total


DEVICE = CpuDevice()


@PlatformRegistry.register(platform=NAME)
class CpuPlatform(PlatformBase):
    """See `verl.plugin.platform.PlatformBase`. Ray is told of logical GPUs, so that verl's placement works as ever."""

    device_name = property(lambda _: "cpu")
    vendor_name = property(lambda _: "cpu")
    device_module = property(lambda _: DEVICE)

    def is_available(self) -> bool:
        """Always."""
        return True

    def current_device(self) -> torch.device:
        """See `CpuDevice.current_device`."""
        return DEVICE.current_device()

    def device_count(self) -> int:
        """One."""
        return 1

    def set_device(self, device_index: int) -> None:
        """Nothing to choose."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Operations have ended when they return."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def set_allocator_settings(self, settings: str) -> None:
        """Nothing to set."""

    def empty_cache(self) -> None:
        """Nothing to empty."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        """None: there is no compute capability."""
        return None, None

    def communication_backend_name(self) -> str:
        """Collectives over the host's network."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """verl sets it to Ray's logical devices; nothing reads it."""
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        """No profiler listens."""
        yield

    def profiler_start(self) -> None:
        """No profiler listens."""

    def profiler_stop(self) -> None:
        """No profiler listens."""

    def ray_resource_name(self) -> str:
        """Ray takes the word of whoever starts it for how many there are (`ray.init(num_gpus=...)`)."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """None."""
        return []

    def is_ipc_supported(self) -> bool:
        """No: weights then pass through shared memory, which is verl's own other way."""
        return False

    def cudart(self) -> None:
        """None."""
