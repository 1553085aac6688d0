"""Reads a Hugging Face `config.json` as an `Architecture`. A model type or a field that it does not know is refused by
name: a count that leaves something out would be a made-up number."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.theory.architecture import Architecture, Attention, Experts, LatentAttention, Layer, Mlp

Config = Mapping[str, Any]
SHIPPED = Path(__file__).parent / "configs"

LLAMA = {
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "tie_word_embeddings", "attention_bias", "mlp_bias",
}  # fmt: skip
WINDOW = {"sliding_window", "use_sliding_window", "max_window_layers", "layer_types", "sliding_window_pattern"}
MIXTURE = {
    "num_local_experts", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step",
    "mlp_only_layers", "shared_expert_intermediate_size", "qkv_bias",
}  # fmt: skip
LATENT = {
    "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "n_routed_experts",
    "n_shared_experts", "first_k_dense_replace", "moe_layer_freq",
}  # fmt: skip
LAYER_TYPES = ("full_attention", "sliding_attention")
NO_SHAPE = {
    "_name_or_path", "architectures", "model_type", "torch_dtype", "dtype", "rope_theta", "rope_scaling",
    "rope_parameters", "rope_interleaved", "rope_local_base_freq", "rms_norm_eps", "hidden_act", "hidden_activation",
    "initializer_range", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id", "transformers_version",
    "attention_dropout", "max_position_embeddings", "pretraining_tp", "router_aux_loss_coef", "output_router_logits",
    "router_jitter_noise", "norm_topk_prob", "routed_scaling_factor", "scoring_func", "topk_method", "n_group",
    "topk_group", "ep_size", "seq_aux", "aux_loss_alpha", "auto_map", "quantization_config", "is_llama_config",
    "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping", "cache_implementation",
    "transformers.js_config", "num_nextn_predict_layers",
}  # fmt: skip
"""Fields that change no count of the model itself; DeepSeek-V3's prediction of further tokens is a module apart."""


def read_config(source: str) -> Architecture:
    """The architecture of a `config.json`: a file, a folder that holds one, or a name of `harness/theory/configs`.

    Raises:
        UserError: there is none, or it has a model type or a field that is not known here.
    """
    path = SHIPPED / f"{source}.json"
    if not path.is_file():
        path = Path(source)
        path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in SHIPPED.glob("*.json")))
        raise UserError(f"model={source}: no config.json there, and none of those shipped: {known}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not a config.json: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a config.json: expected one object")
    return architecture_of(content)


def architecture_of(config: Config) -> Architecture:
    """The architecture of a config's content.

    Raises:
        UserError: names the field that is unknown, missing or impossible.
    """
    kind = config.get("model_type")
    if kind not in _KINDS:
        raise UserError(f"model_type={kind}: not known here; there are {', '.join(sorted(_KINDS))}")
    fields, layer = _KINDS[kind]
    if unknown := sorted(set(config) - fields - NO_SHAPE):
        raise UserError(f"{kind}: the field {unknown[0]} is not known here, so its parameters cannot be counted")
    number = _count(config, "num_hidden_layers")
    return Architecture(
        model_type=str(kind),
        vocabulary=_count(config, "vocab_size"),
        hidden=_count(config, "hidden_size"),
        tied=bool(config.get("tie_word_embeddings", kind in TIED_BY_DEFAULT)),
        layers=[layer(config, index) for index in range(number)],
    )


def _count(config: Config, name: str, default: int | None = None) -> int:
    value = config.get(name, default)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{config.get('model_type')}: {name}={value}: expected a whole number above 0")
    return value


def _attention(config: Config, *, qkv_bias: bool, out_bias: bool, qk_norm: bool = False) -> Attention:
    heads = _count(config, "num_attention_heads")
    kv_heads = _count(config, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise UserError(f"num_attention_heads={heads} is no multiple of num_key_value_heads={kv_heads}")
    hidden = _count(config, "hidden_size")
    if not config.get("head_dim") and hidden % heads:
        raise UserError(
            f"hidden_size={hidden} is no multiple of num_attention_heads={heads}, and head_dim is not given"
        )
    return Attention(heads, kv_heads, _count(config, "head_dim", hidden // heads), qkv_bias, out_bias, qk_norm)


def _window(config: Config, index: int, default_pattern: int | None = None) -> int | None:
    """The window of a layer: by its type where the config lists them, else by the rules of its model type."""
    window = config.get("sliding_window")
    if window is None:
        return None
    size = _count(config, "sliding_window")
    if types := config.get("layer_types"):
        if not isinstance(types, list) or index >= len(types) or types[index] not in LAYER_TYPES:
            raise UserError(
                f"{config['model_type']}: layer_types: expected one of {', '.join(LAYER_TYPES)} for each layer"
            )
        return size if types[index] == LAYER_TYPES[1] else None
    if pattern := config.get("sliding_window_pattern", default_pattern):
        return size if (index + 1) % pattern else None
    if "use_sliding_window" in config:
        first = config.get("max_window_layers", 0) or 0
        return size if config["use_sliding_window"] and index >= first else None
    return size


def _llama(config: Config, index: int) -> Layer:
    bias = bool(config.get("attention_bias", False))
    mlp = Mlp(_count(config, "intermediate_size"), bool(config.get("mlp_bias", False)))
    return Layer(_attention(config, qkv_bias=bias, out_bias=bias), mlp, _window(config, index))


def _qwen2(config: Config, index: int) -> Layer:
    attention = _attention(config, qkv_bias=True, out_bias=False)
    return Layer(attention, Mlp(_count(config, "intermediate_size")), _window(config, index))


def _qwen3(config: Config, index: int) -> Layer:
    bias = bool(config.get("attention_bias", False))
    attention = _attention(config, qkv_bias=bias, out_bias=bias, qk_norm=True)
    return Layer(attention, Mlp(_count(config, "intermediate_size")), _window(config, index))


def _gemma(config: Config, index: int, *, norms: int, qk_norm: bool, pattern: int | None) -> Layer:
    bias = bool(config.get("attention_bias", False))
    attention = _attention(config, qkv_bias=bias, out_bias=bias, qk_norm=qk_norm)
    return Layer(attention, Mlp(_count(config, "intermediate_size")), _window(config, index, pattern), norms)


def _mixtral(config: Config, index: int) -> Layer:
    expert = Mlp(_count(config, "intermediate_size"))
    mixture = Experts(_count(config, "num_local_experts"), _count(config, "num_experts_per_tok"), expert)
    return Layer(_attention(config, qkv_bias=False, out_bias=False), mixture, _window(config, index))


def _qwen_moe(config: Config, index: int) -> Layer:
    second = config["model_type"] == "qwen2_moe"
    bias = bool(config.get("qkv_bias", True)) if second else bool(config.get("attention_bias", False))
    attention = _attention(config, qkv_bias=bias, out_bias=bias and not second, qk_norm=not second)
    window = _window(config, index)
    sparse = _count(config, "decoder_sparse_step", 1)
    if index in (config.get("mlp_only_layers") or ()) or (index + 1) % sparse:
        return Layer(attention, Mlp(_count(config, "intermediate_size")), window)
    expert = Mlp(_count(config, "moe_intermediate_size"))
    shared = Mlp(_count(config, "shared_expert_intermediate_size")) if second else None
    counts = _count(config, "num_experts"), _count(config, "num_experts_per_tok")
    return Layer(attention, Experts(*counts, expert, shared, shared_gate=second), window)


def _deepseek(config: Config, index: int) -> Layer:
    rank = config.get("q_lora_rank")
    attention = LatentAttention(
        heads=_count(config, "num_attention_heads"),
        q_rank=None if rank is None else _count(config, "q_lora_rank"),
        kv_rank=_count(config, "kv_lora_rank"),
        nope_dim=_count(config, "qk_nope_head_dim"),
        rope_dim=_count(config, "qk_rope_head_dim"),
        value_dim=_count(config, "v_head_dim"),
        bias=bool(config.get("attention_bias", False)),
    )
    dense = config.get("first_k_dense_replace", 0)
    every = _count(config, "moe_layer_freq", 1)
    if not config.get("n_routed_experts") or index < dense or index % every:
        return Layer(attention, Mlp(_count(config, "intermediate_size")))
    inner = _count(config, "moe_intermediate_size")
    number = config.get("n_shared_experts")
    shared = Mlp(inner * _count(config, "n_shared_experts")) if number else None
    counts = _count(config, "n_routed_experts"), _count(config, "num_experts_per_tok")
    return Layer(attention, Experts(*counts, Mlp(inner), shared))


def _gemma_of(norms: int, pattern: int | None, *, qk_norm: bool = False) -> Callable[[Config, int], Layer]:
    return lambda config, index: _gemma(config, index, norms=norms, qk_norm=qk_norm, pattern=pattern)


_KINDS: dict[str, tuple[set[str], Callable[[Config, int], Layer]]] = {
    "llama": (LLAMA | WINDOW, _llama),
    "mistral": (LLAMA | WINDOW, _llama),
    "qwen2": (LLAMA | WINDOW, _qwen2),
    "qwen3": (LLAMA | WINDOW, _qwen3),
    "gemma": (LLAMA, _gemma_of(2, None)),
    "gemma2": (LLAMA | WINDOW, _gemma_of(4, 2)),
    "gemma3_text": (LLAMA | WINDOW, _gemma_of(4, 6, qk_norm=True)),
    "mixtral": (LLAMA | WINDOW | MIXTURE, _mixtral),
    "qwen2_moe": (LLAMA | WINDOW | MIXTURE, _qwen_moe),
    "qwen3_moe": (LLAMA | WINDOW | MIXTURE, _qwen_moe),
    "deepseek_v2": (LLAMA | LATENT | MIXTURE, _deepseek),
    "deepseek_v3": (LLAMA | LATENT | MIXTURE, _deepseek),
}
TIED_BY_DEFAULT = {"gemma", "gemma2", "gemma3_text"}
"""What their config leaves out where it is the default of the model type."""
