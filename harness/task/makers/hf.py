"""Any causal language model from a local folder or the Hugging Face hub, as safetensors in one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.errors import UserError
from harness.task.makers.job import Job, Made, say
from harness.task.problem import Problem, read_settings

PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
WANTED = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]


@dataclass(frozen=True)
class HfSettings:
    """`path` is a folder or a hub id, `revision` a hub revision."""

    name: str = "hf"
    path: str = ""
    revision: str = "main"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"


def make(job: Job, _problems: list[Problem]) -> Made:
    """The model as `transformers` loads it; a tokenizer without a chat template gets one that adds nothing."""
    settings = read_settings(HfSettings, job.model, "model")
    if not settings.path:
        raise UserError("model=hf needs model.path: a local folder or a hub id, such as model.path=Qwen/Qwen2.5-0.5B")
    folder = _folder(settings)
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"{settings.path} has no safetensors weights, and pickled ones are never loaded: convert them")
    return Made(_load_model(folder, settings), *_load_tokenizer(folder, settings))


def _folder(settings: HfSettings) -> Path:
    local = Path(settings.path).expanduser()
    if local.is_dir():
        return local
    if local.is_absolute() or settings.path.count("/") != 1:
        raise UserError(f"model.path is {settings.path}: there is no such folder, and a hub id is owner/name")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    say(f"fetching {settings.path} ({settings.revision})")
    try:
        return Path(snapshot_download(settings.path, revision=settings.revision, allow_patterns=WANTED))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise UserError(
            f"model.path is {settings.path}: there is no such folder, and the hub did not give it "
            f"({type(error).__name__}: {str(error).splitlines()[0]})"
        ) from error


def _load_model(folder: Path, settings: HfSettings) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    say(f"loading {settings.path} in {settings.dtype}")
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder, dtype=getattr(torch, settings.dtype), use_safetensors=True, local_files_only=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{settings.path} does not load as a causal language model: {error}") from error


def _load_tokenizer(folder: Path, settings: HfSettings) -> tuple[Any, dict[str, Any]]:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{settings.path} has no tokenizer that loads: {error}") from error
    if tokenizer.eos_token_id is None:
        raise UserError(f"{settings.path} has no EOS token: no completion would ever end")
    meta: dict[str, Any] = {"source": settings.path, "revision": settings.revision}
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
        meta["padding"] = "the EOS token"
    if not tokenizer.chat_template:
        tokenizer.chat_template = PLAIN_TEMPLATE
        meta["chat_template"] = "none of its own: the messages' text as it is"
        say(f"{settings.path} has no chat template: prompts are the messages' text as it is")
    return tokenizer, meta
