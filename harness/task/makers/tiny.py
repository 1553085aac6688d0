"""A Qwen2 of two layers that speaks characters, fitted until about half of its sampled answers are right."""

import string
from dataclasses import dataclass
from typing import Any

from harness.errors import UserError
from harness.task.makers.fit import fit
from harness.task.makers.job import Job, Made, say
from harness.task.problem import Problem, read_settings

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
ROLES = ("<system>", "<user>", "<assistant>")
BYTE_LEVEL = {" ": "\u0120", "\n": "\u010a"}
CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"
# One token for the role, then the content: prompts stay short, and a turn's end is learnt as EOS.
TEMPLATE = (
    "{% for message in messages %}{{ '<' + message['role'] + '>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)
# vLLM's CPU attention kernels take this head size and not smaller ones.
HEAD_DIMENSION = 64


@dataclass(frozen=True)
class TinySettings:
    """`hidden` is a multiple of 64; the fit stops once `accuracy` of sampled answers are right, or at `most_steps`."""

    name: str = "tiny"
    layers: int = 2
    hidden: int = 128
    seed: int = 0
    accuracy: float = 0.45
    most_steps: int = 1500

    def __post_init__(self) -> None:
        if self.hidden % HEAD_DIMENSION or self.hidden < HEAD_DIMENSION or self.layers < 1:
            raise UserError(f"model.hidden must be a multiple of {HEAD_DIMENSION} and model.layers at least 1")
        if not 0.0 < self.accuracy < 1.0:
            raise UserError("model.accuracy must lie between 0 and 1")


def make(job: Job, problems: list[Problem]) -> Made:
    """The fitted model; `meta` has the sampled accuracy, and how many groups of 8 would teach something."""
    settings = read_settings(TinySettings, job.model, "model")
    tokenizer = build_tokenizer()
    model = build_model(settings, tokenizer)
    say(f"fitting a model of {model.num_parameters():,} parameters")
    meta = fit(model, tokenizer, job.task, problems, settings.seed, settings.accuracy, settings.most_steps)
    return Made(model, tokenizer, meta)


def build_tokenizer() -> Any:
    """One token a printable ASCII character, space and newline; `<eos>` and `<pad>` are different tokens.

    Byte-level BPE without merges, which is what Qwen2Tokenizer makes of any vocabulary: transformers 5 loads the
    tokenizer of a Qwen2 model as that class whatever its files say, and would drop spaces from another kind.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [PAD, EOS, UNKNOWN, *ROLES, *(BYTE_LEVEL.get(character, character) for character in CHARACTERS)]
    characters = Tokenizer(models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=[]))
    characters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    characters.decoder = decoders.ByteLevel()
    # Here and not through transformers, whose two major versions write this list to their config in different shapes.
    characters.add_special_tokens([PAD, EOS, UNKNOWN, *ROLES])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=characters,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        model_max_length=1024,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def build_model(settings: TinySettings, tokenizer: Any) -> Any:
    """Random weights in float32 from the seed, input and output embeddings untied."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(settings.seed)
    heads = settings.hidden // HEAD_DIMENSION
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden,
        intermediate_size=2 * settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 2),
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.05,
        dtype="float32",
    )
    return Qwen2ForCausalLM(config)
