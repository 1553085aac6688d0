"""Counts from configs against those that the models' own cards and checkpoints publish."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.theory.architecture import Attention, Layer, Mlp
from harness.theory.hf_config import architecture_of, read_config

PUBLISHED = {
    "smollm2-135m": 134_515_008,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "gemma-2-2b": 2_614_341_888,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_404_352,
}
SMALL = {
    "model_type": "llama",
    "vocab_size": 10,
    "hidden_size": 4,
    "intermediate_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_parameters_are_those_that_are_published(name: str, count: int) -> None:
    assert read_config(name).parameters == count


def test_by_hand() -> None:
    # embedding 40 and head 40; a layer: q 16, k and v 8 each, o 16, MLP 72, norms 8; the last norm 4
    assert architecture_of(SMALL).parameters == 80 + 2 * (16 + 8 + 8 + 16 + 72 + 8) + 4
    assert architecture_of(SMALL | {"tie_word_embeddings": True}).parameters == 40 + 2 * 128 + 4
    assert architecture_of(SMALL | {"attention_bias": True}).parameters == 80 + 2 * (128 + 8 + 4) + 4
    assert architecture_of(SMALL).adapter(1) == 2 * (8 + 6 + 6 + 8 + 3 * 10)


def test_a_mixture_counts_all_experts_and_its_active_ones() -> None:
    mixtral = read_config("mixtral-8x7b")
    assert mixtral.active == 12_879_925_248
    assert mixtral.parameters - mixtral.active == 32 * 6 * 3 * 4096 * 14_336


def test_what_each_kind_of_attention_retains_of_a_token() -> None:
    assert read_config("llama-3-8b").cached(1) * 2 == 131_072
    assert read_config("deepseek-v3").cached(1) == 61 * (512 + 64)
    assert read_config("qwen1.5-moe-a2.7b").cached(1) == 24 * 2 * 16 * 128
    assert Attention(8, 1, 64).kept_per_token == 2 * 64


def test_a_window_bounds_what_is_retained() -> None:
    mistral, gemma = read_config("mistral-7b-v0.1"), read_config("gemma-2-2b")
    assert mistral.cached(100_000) == mistral.cached(4096) == 32 * 2 * 8 * 128 * 4096
    of_a_layer = 2 * 4 * 256
    assert gemma.cached(8192) == 13 * of_a_layer * 4096 + 13 * of_a_layer * 8192
    assert read_config("qwen2.5-7b").cached(200_000) == 28 * 2 * 4 * 128 * 200_000
    layers = architecture_of(
        SMALL | {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
    ).layers
    assert [layer.window for layer in layers] == [8, None]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "mamba"}, "model_type=mamba"),
        ({"moe_topk_gizmo": 4}, "moe_topk_gizmo"),
        ({"hidden_size": None}, "hidden_size=None"),
        ({"hidden_size": 4.5}, "hidden_size=4.5"),
        ({"num_hidden_layers": -1}, "num_hidden_layers=-1"),
        ({"num_attention_heads": 3}, "num_attention_heads=3"),
        ({"num_key_value_heads": 3}, "num_key_value_heads=3"),
        ({"sliding_window": 8, "layer_types": ["sliding_attention"]}, "layer_types"),
        ({"sliding_window": 8, "layer_types": ["mamba", "mamba"]}, "layer_types"),
    ],
)
def test_what_cannot_be_counted_is_refused_by_name(change: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        architecture_of(SMALL | change)
    assert "\n" not in str(refused.value)


@given(st.dictionaries(st.sampled_from([*SMALL, "head_dim", "x"]), st.none() | st.integers() | st.text(max_size=3)))
@settings(max_examples=60)
def test_rubbish_is_refused_or_counted(changes: dict[str, object]) -> None:
    changes = {key: value for key, value in changes.items() if not (isinstance(value, int) and value > 1000)}
    with suppress(UserError):
        assert architecture_of(SMALL | changes).parameters > 0


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 400))
@settings(max_examples=40)
def test_the_cache_never_shrinks_and_a_window_never_adds(tokens: int, more: int, window: int) -> None:
    attention, mlp = Attention(4, 2, 8), Mlp(16)
    whole, cut = Layer(attention, mlp), Layer(attention, mlp, window)
    assert whole.cached(tokens) <= whole.cached(tokens + more)
    assert cut.cached(tokens) <= whole.cached(tokens)


def test_a_folder_and_a_file_are_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "config.json").write_text('{"model_type": "llama"', encoding="utf-8")
    with pytest.raises(UserError, match=r"config\.json: not a config\.json"):
        read_config(str(tmp_path))
    with pytest.raises(UserError, match="none of those shipped: deepseek-v2-lite"):
        read_config("no-such-model")
