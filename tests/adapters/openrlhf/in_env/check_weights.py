"""A broadcast on vLLM's CPU build: weights that arrive one by one are all served, in float32 to 1e-5, tied or not."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from adapters.openrlhf.cpu.table import PATCHES
from adapters.openrlhf.imports import VARIABLE, in_force, install
from adapters.openrlhf.run import CPU_ENVIRONMENT

PROMPT = list(range(2, 12)) * 3
TOLERANCE = 1e-5


def model(seed: int, *, tied: bool) -> Qwen2ForCausalLM:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": tied}
    return Qwen2ForCausalLM(Qwen2Config(**sizes, **heads, initializer_range=0.2)).eval()


def largest_gap(engine: Any, trained: Qwen2ForCausalLM) -> float:
    """Between the engine's log-probs of what it samples and those of a module for the same tokens."""
    from vllm import SamplingParams

    params = SamplingParams(max_tokens=16, temperature=1.0, logprobs=0, ignore_eos=True, seed=5, detokenize=False)
    output = engine.generate({"prompt_token_ids": PROMPT}, params, use_tqdm=False)[0].outputs[0]
    tokens = list(output.token_ids)
    theirs = torch.tensor([known[token].logprob for known, token in zip(output.logprobs, tokens, strict=True)])
    with torch.no_grad():
        logits = trained(input_ids=torch.tensor([PROMPT + tokens])).logits[0].float().log_softmax(-1)
    ours = torch.stack([logits[len(PROMPT) - 1 + at, token] for at, token in enumerate(tokens)])
    return float((theirs - ours).abs().max())


def started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An engine with the patches in force, which have to be there before vLLM is imported."""
    for name, value in (CPU_ENVIRONMENT | {VARIABLE: in_force(PATCHES)}).items():
        monkeypatch.setenv(name, value)
    install()
    from vllm import LLM

    return LLM(
        model=str(folder),
        dtype="float32",
        max_model_len=64,
        max_num_seqs=4,
        kv_cache_memory_bytes=1 << 24,
        skip_tokenizer_init=True,
        enforce_eager=True,
        enable_prefix_caching=False,
    )


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_weights_that_arrive_one_by_one_are_served(tied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = model(1, tied=tied), model(2, tied=tied)
    first.save_pretrained(tmp_path)
    engine = started(tmp_path, monkeypatch)
    served = engine.llm_engine.model_executor.driver_worker.worker.model_runner.model
    assert largest_gap(engine, first) < TOLERANCE
    for name, weight in second.named_parameters():
        served.load_weights(weights=[(name, weight.detach().clone())])
    assert largest_gap(engine, second) < TOLERANCE
    assert largest_gap(engine, first) > 100 * TOLERANCE
