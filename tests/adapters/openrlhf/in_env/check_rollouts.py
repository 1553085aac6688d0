"""The engine's side on vLLM's AsyncLLM and OpenRLHF's own calls, without Ray: after a broadcast the engine samples from
the new weights, and a sequence that a broadcast came into says which token is whose."""

import asyncio
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from adapters.openrlhf.hooks import patches_of
from adapters.openrlhf.imports import VARIABLE, in_force, install
from adapters.openrlhf.records import Completion
from adapters.openrlhf.run import CPU_ENVIRONMENT, HERE, STAND_IN
from adapters.openrlhf.settings import prompt_file
from harness.contract import compact, read_cell
from harness.probe.probe import CELL_VARIABLE
from tests.adapters.openrlhf.cells import cell_of
from tests.task.bundles import write_bundle

PROMPT, TOKENS, LONG = [1, 2], 8, 400
"""The prompt is the bundle's."""
TOLERANCE, LONG_TOLERANCE = 1e-5, 1e-4
"""In float32; over hundreds of tokens the two sides' rounding differs by some 2e-5."""
TASK = {"prompts_per_batch": 1, "group_size": 4, "steps": 3, "max_tokens": LONG}


def model(seed: int) -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": True, "eos_token_id": 63}
    return Qwen2ForCausalLM(Qwen2Config(**sizes, **heads, initializer_range=0.2)).eval()


def gaps(completion: Completion, module: Any) -> torch.Tensor:
    """Between the behaviour log-probs and those of a module, token by token."""
    ids = torch.tensor([PROMPT + completion.tokens])
    with torch.no_grad():
        scores = module(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
    return (torch.tensor(completion.logprobs) - scores[len(PROMPT) - 1 :]).abs()


class Engine:
    """OpenRLHF's engine actor without its actor, and a trainer's rank to broadcast from."""

    def __init__(self, path: Path) -> None:
        import vllm
        from openrlhf.trainer.ray.vllm_engine import RolloutRayActor
        from openrlhf.utils.distributed_util import stateless_init_process_group

        self._group_of = stateless_init_process_group
        self._methods = RolloutRayActor._actors.__ray_metadata__.modified_class
        arguments = vllm.AsyncEngineArgs(
            model=str(path),
            worker_extension_cls="openrlhf.trainer.ray.vllm_worker_wrap.WorkerWrap",
            distributed_executor_backend="uni",
            dtype="float32",
            enforce_eager=True,
            max_model_len=LONG + len(PROMPT),
            kv_cache_memory_bytes=1 << 26,
            skip_tokenizer_init=True,
            logprobs_mode="processed_logprobs",
            max_logprobs=1,
        )
        self.llm = vllm.AsyncLLMEngine.from_engine_args(arguments)

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A method of OpenRLHF's actor."""
        return await getattr(self._methods, method)(self, *args, **kwargs)

    async def join(self) -> None:
        """Trainer and engine become one group."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        asked = asyncio.create_task(self.call("init_process_group", "127.0.0.1", port, 1, 2, "g", "nccl", False))
        self._group = await asyncio.to_thread(self._group_of, "127.0.0.1", port, 0, 2, None)
        await asked

    async def broadcast(self, module: Any) -> None:
        """As `ActorPPOTrainer.broadcast_to_vllm` does, tensor by tensor."""
        named = list(module.named_parameters())
        for at, (name, tensor) in enumerate(named, 1):
            last = at == len(named)
            asked = asyncio.create_task(self.call("update_weight", name, tensor.dtype, tensor.shape, empty_cache=last))
            await asyncio.to_thread(self._group.broadcast, tensor.data, 0)
            await asked


@dataclass
class Seen:
    """Completions before and after a broadcast, and those that a second one came into; the spans of all."""

    before: list[Completion]
    after: list[Completion]
    across: list[Completion]
    spans: list[dict[str, Any]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder: Path = tmp_path_factory.mktemp("cell")
    cell = cell_of(folder, write_bundle(folder / "bundle"), track="fixed_length", **TASK)
    prompt_file(cell).parent.mkdir()
    first = json.loads((folder / "bundle" / "prompts.jsonl").read_text().splitlines()[0])["prompt_id"]
    prompt_file(cell).write_text("\n".join([json.dumps({"prompt_id": first})] * 3), encoding="utf-8")
    (folder / "cell.json").write_text(json.dumps(cell), encoding="utf-8")
    patches = {VARIABLE: in_force(patches_of(cell, watched=False)), CELL_VARIABLE: str(folder / "cell.json")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (CPU_ENVIRONMENT | patches).items():
            patch.setenv(name, value)
        patch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")
        patch.setenv("VLLM_WORKER_MULTIPROCESSING_METHOD", "spawn")  # as in a Ray actor
        patch.setenv("PYTHONPATH", f"{HERE / 'startup'}:{STAND_IN}", prepend=":")
        patch.syspath_prepend(STAND_IN)
        install()
        model(1).save_pretrained(folder / "model")
        before, after, across = asyncio.run(sample(cell, folder / "model"))
    compact(folder / "streams", folder / "ledger", "cell")
    spans = read_cell(folder / "ledger", "cell").table("spans").to_pylist()
    return Seen(before, after, across, [span for span in spans if span["stage"] == "generate"])


async def sample(cell: dict[str, Any], path: Path) -> tuple[list[Completion], ...]:
    from vllm import SamplingParams

    from adapters.openrlhf.rollouts import FINISH, RolloutWork

    work, engine = RolloutWork(cell), Engine(path)
    tokenizer = SimpleNamespace(decode=lambda *_, **__: "1")

    async def group(row: int, tokens: int) -> list[Completion]:
        params = SamplingParams(temperature=1.0, max_tokens=tokens, min_tokens=1, detokenize=False)
        asked = [work.complete("p", str(row), params, tokenizer, engine) for _ in range(cell["task"]["group_size"])]
        return [Completion.from_label(answer["label"]) for answer in await asyncio.gather(*asked)]

    await engine.join()
    before = await group(0, TOKENS)
    await engine.broadcast(model(2))
    after = await group(1, TOKENS)
    under_way = asyncio.create_task(group(2, LONG))
    while not work._generating._counts.get("output_tokens"):
        await asyncio.sleep(0.001)
    await engine.call("pause_generation")
    await engine.broadcast(model(1))
    await engine.call("resume_generation")
    across = await under_way
    await work.complete(FINISH, "", None, tokenizer, engine)
    engine.llm.shutdown()
    return before, after, across


def test_an_engine_samples_from_the_weights_that_it_was_sent(seen: Seen) -> None:
    for completions, weights, served in ((seen.before, 1, 0), (seen.after, 2, 1)):
        for completion in completions:
            assert gaps(completion, model(weights)).max() < TOLERANCE
            assert completion.served == [[served, TOKENS]]


def test_a_sequence_under_way_goes_on_with_the_new_weights_and_says_from_which_token_on(seen: Seen) -> None:
    spanning = [completion for completion in seen.across if len(completion.served) == 2]
    assert spanning
    for completion in spanning:
        (old, count), (new, _) = completion.served
        assert (old, new) == (1, 2)
        assert gaps(completion, model(2))[:count].max() < LONG_TOLERANCE
        assert gaps(completion, model(1))[count:].max() < LONG_TOLERANCE
        assert gaps(completion, model(2))[count:].max() > 100 * LONG_TOLERANCE


def test_every_token_is_in_a_span_and_the_pause_in_none(seen: Seen) -> None:
    everyone = [*seen.before, *seen.after, *seen.across]
    assert sum(span["output_tokens"] for span in seen.spans) == sum(len(one.tokens) for one in everyone)
    assert len([span for span in seen.spans if span["trace_id"] == "gen-2"]) == 2
    assert {len(one.tokens) for one in seen.across} == {LONG}


def test_times_are_in_order(seen: Seen) -> None:
    stages = ("t_queued", "t_generate_start", "t_first_token", "t_generate_end", "t_verify_start", "t_verify_end")
    for completion in seen.before:
        times = [completion.times[stage] for stage in stages]
        assert times == sorted(times)
