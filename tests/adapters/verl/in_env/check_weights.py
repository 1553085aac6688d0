"""Weights that verl writes into a live vLLM are those that it answers with, also where embeddings are tied.

vLLM's CPU build packs linear layers at start; a tied output layer then keeps the weights of the start without a word.
"""

import os
from pathlib import Path
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ["VERL_PLATFORM"] = "cpu"

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

import adapters.verl.cpu.plugin  # noqa: F401  (what a process of verl's loads)

PROMPT, TOKENS = [4, 14, 78, 15, 86, 5], 12


def _model(tied: bool, seed: int) -> Any:
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=102,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        initializer_range=0.2,
        tie_word_embeddings=tied,
    )
    return Qwen2ForCausalLM(config).float().eval()


def _scored(model: Any, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        logits = model(torch.tensor([PROMPT + tokens])).logits[0, len(PROMPT) - 1 : -1]
    return logits.float().log_softmax(-1).gather(-1, torch.tensor(tokens)[:, None])[:, 0]


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_the_engine_answers_with_the_weights_that_were_written(tied: bool, tmp_path: Path) -> None:
    from vllm import LLM, SamplingParams

    first, second = _model(tied, 0), _model(tied, 1)
    first.save_pretrained(tmp_path / "model")
    engine = LLM(
        model=str(tmp_path / "model"),
        dtype="float32",
        max_model_len=64,
        max_num_seqs=4,
        kv_cache_memory_bytes=64 << 20,
        logprobs_mode="processed_logprobs",
        skip_tokenizer_init=True,
        enforce_eager=True,
    )
    runner = engine.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner
    runner.model.load_weights(second.state_dict().items())
    assert engine.reset_prefix_cache() is True
    sampling = SamplingParams(temperature=1.0, max_tokens=TOKENS, logprobs=0, ignore_eos=True, detokenize=False)
    answer = engine.generate({"prompt_token_ids": PROMPT}, sampling)[0].outputs[0]
    tokens = list(answer.token_ids)
    said = torch.tensor([step[token].logprob for step, token in zip(answer.logprobs, tokens, strict=True)])
    assert (said - _scored(second, tokens)).abs().max() < 1e-4
    assert (said - _scored(first, tokens)).abs().max() > 0.1
    engine.llm_engine.engine_core.shutdown()
