"""Low-rank adapters in vLLM: each publication is an adapter of its own, which later requests ask for."""

import tempfile
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from vllm.lora.request import LoRARequest

from adapters.reference.lora import lora_config, peft_name
from adapters.reference.settings import Lora
from harness.errors import SystemFailure

# Ranks that vLLM has room for; it takes smaller ones in.
ROOMS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


def lora_options(lora: Lora) -> dict[str, Any]:
    """What `vllm.LLM` is started with, to serve one adapter of that rank."""
    room = next(room for room in ROOMS if room >= lora.rank)
    return {"enable_lora": True, "max_lora_rank": room, "max_loras": 1}


class Adapters:
    """Loads adapters one after another. `request` is what a generation request must carry, None before the first."""

    def __init__(self, engine: Any, lora: Lora) -> None:
        self._engine, self._lora = engine, lora
        self._loaded = 0
        self.request: Any = None

    def load(self, tensors: list[tuple[str, Any]]) -> None:
        """Serve these tensors, named as in the trained module. Raises SystemFailure where vLLM did not take them."""
        self._loaded += 1
        with tempfile.TemporaryDirectory() as folder:
            lora_config(self._lora).save_pretrained(folder)
            path = Path(folder) / "adapter_model.safetensors"
            save_file({peft_name(name): tensor.cpu().contiguous() for name, tensor in tensors}, path)
            request = self.named(folder)
            if self._engine.add_lora(request) is not True:
                raise SystemFailure(f"vLLM did not load adapter {request.lora_int_id}")
        self.request = request

    def named(self, folder: str) -> Any:
        """The adapter in `folder` under a name and number that no other has had: under a number that it knows, vLLM
        would go on serving the adapter that it has."""
        return LoRARequest(f"publication-{self._loaded}", self._loaded, folder)
