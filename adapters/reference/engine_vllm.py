"""The fast engine: vLLM in the process of the loop or of a replica, fed with the trainer's weights after each batch.

Traps of its CPU build, each met here: a bare `load_weights` applies half (use `reload_weights`); a tied output layer
stays packed as it was (repack it); the prefix cache outlives a change of weights (reset it, and believe only its
answer); a number that an adapter has had serves that adapter (take a fresh one); its own checksums prove nothing (the
publisher compares log-probs); the first request compiles (warm up).
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# In-process: the engine's step is then a call that can be timed, and weights pass as tensors. Read at import.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

from vllm import LLM, SamplingParams
from vllm.sampling_params import RequestOutputKind

from adapters.reference.adapters_vllm import Adapters, lora_options
from adapters.reference.engine import Completion, Finished, Generation, PhaseClock
from adapters.reference.settings import Decoding, Settings
from harness.errors import SystemFailure
from harness.probe.hooks import HookPoint

SCHEDULER = "vllm.v1.core.sched.scheduler:Scheduler"
RUNNER = "vllm.v1.worker.gpu_model_runner:GPUModelRunner"
HOOKS = (
    HookPoint("vllm.v1.engine.llm_engine:LLMEngine.step", "decode", "one forward pass and its sampling"),
    HookPoint(
        "vllm.v1.engine.llm_engine:LLMEngine.add_request",
        "tokens",
        "submits a prompt",
        ("request_id", "prompt", "params", "lora_request"),
    ),
    HookPoint("vllm.v1.engine.core_client:InprocClient", "decode", "the engine runs in this process"),
    HookPoint(f"{SCHEDULER}.schedule", "prefill", "what a forward pass computes for each request"),
    HookPoint(f"{RUNNER}.reload_weights", "weight_sync", "replaces all weights from tensors", ("weights_iterator",)),
    HookPoint(
        "vllm:LLM.reset_prefix_cache",
        "weight_sync",
        "forgets keys and values of the old weights, those of requests in flight too",
        ("reset_running_requests",),
    ),
    HookPoint("vllm.v1.engine.llm_engine:LLMEngine.add_lora", "weight_sync", "loads an adapter", ("lora_request",)),
    HookPoint("vllm.v1.engine.llm_engine:LLMEngine.set_weight_version", "weight_sync", "what later tokens are tagged"),
    HookPoint("vllm.outputs:WeightVersionSpan", "tokens", "which version sampled which tokens"),
)

BLOCK_TOKENS = 32
MIN_CACHE_BYTES = 64 << 20


class VllmEngine:
    """vLLM's engine, with a copy of the weights of its own."""

    name = "vllm"

    def __init__(self, settings: Settings, model: Any, longest_prompt: int, eos: int) -> None:
        """`model` gives the sizes of the cache; `longest_prompt` is in tokens, `eos` the end-of-sequence token's id."""
        self._decoding, self._eos, self.publication_kind = settings.decoding, eos, settings.publication
        longest = longest_prompt + settings.decoding.max_tokens
        self._llm = LLM(
            model=str(settings.bundle / "model"),
            dtype="float32",
            seed=settings.seed,
            max_model_len=longest,
            max_num_seqs=settings.batch_size,
            max_num_batched_tokens=max(2048, settings.batch_size),
            block_size=BLOCK_TOKENS,
            kv_cache_memory_bytes=_cache_bytes(model, settings.batch_size, longest),
            logprobs_mode="processed_logprobs",
            generation_config="vllm",
            skip_tokenizer_init=True,
            enforce_eager=True,
            enable_prefix_caching=True,
            async_scheduling=False,
            **(lora_options(settings.lora) if settings.publication == "adapter" else {}),
        )
        self._engine = self._llm.llm_engine
        self._adapters = Adapters(self._engine, settings.lora) if settings.publication == "adapter" else None
        core = self._engine.engine_core.engine_core
        self._watch = _Watch(core.scheduler)
        self._module = core.model_executor.driver_worker.worker.model_runner.model
        # On a GPU nothing is packed; on a CPU a tied output layer keeps the pack that was made at start.
        self._repacks = settings.device == "cpu" and model.config.tie_word_embeddings
        self._under_requests = settings.versions == "token"
        self._asked = 0

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        n: int,
        max_tokens: int,
        between: Callable[[], bool] | None = None,
        finished: Finished | None = None,
    ) -> Generation:
        """See `Engine.generate`. Each completion is a request of its own; a group's later ones take the whole blocks
        of their prompt from the cache, where it fills any."""
        clock, queued = PhaseClock(), time.perf_counter_ns()
        sampling = _sampling(self._decoding, self._eos, max_tokens)
        names = [[self._add(prompt, sampling) for _ in range(n)] for prompt in prompts]
        number_of = {name: number for number, group in enumerate(names) for name, _ in group}
        ended: dict[str, tuple[Any, int]] = {}
        groups: dict[int, list[Completion]] = {}
        while self._engine.has_unfinished_requests():
            outputs = self._engine.step()
            end = self._watch.tick(clock)
            ended |= {output.request_id: (output.outputs[0], end) for output in outputs}
            for number in sorted({number_of[output.request_id] for output in outputs}):
                if all(name in ended for name, _ in names[number]):
                    groups[number] = [
                        self._completion(*ended[name], queued, self._watch.of(inner), between is not None)
                        for name, inner in names[number]
                    ]
                    if finished is not None:
                        finished(number, groups[number])
            if between is not None and between():
                clock.skip()
        self._watch.forget()
        lost = len(number_of) - len(ended)
        if lost:
            raise SystemFailure(f"vLLM lost {lost} of {len(number_of)} requests")
        return Generation([groups[number] for number in range(len(names))], clock.stop())

    def publish(self, weights: Iterable[tuple[str, Any]], version: int) -> int:
        """Copy the weights in. Raises SystemFailure where the cache of the old ones could not be dropped."""
        tensors = list(weights)
        if self._adapters is not None:
            self._adapters.load(tensors)
        else:
            self._reload(tensors)
        # Requests in flight, where there may be any, are put back and computed anew from their first token on.
        if self._llm.reset_prefix_cache(reset_running_requests=self._under_requests) is not True:
            raise SystemFailure("vLLM did not reset its prefix cache: it would answer from the old weights")
        self._engine.set_weight_version(str(version))
        return sum(tensor.numel() * tensor.element_size() for _, tensor in tensors)

    def _reload(self, tensors: list[tuple[str, Any]]) -> None:
        self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(tensors)})
        if self._repacks:
            self._module.lm_head.quant_method.process_weights_after_loading(self._module.lm_head)

    def close(self) -> None:
        """Shut the engine down."""
        self._engine.engine_core.shutdown()

    def _add(self, prompt: Sequence[int], sampling: SamplingParams) -> tuple[str, str]:
        """Queue a request; returns the name that its output bears and the one that the scheduler uses."""
        self._asked += 1
        name = str(self._asked)
        adapter = self._adapters.request if self._adapters is not None else None
        inner = self._engine.add_request(name, {"prompt_token_ids": list(prompt)}, sampling, lora_request=adapter)
        self._watch.expect(inner, len(prompt))
        return name, inner

    def _completion(self, output: Any, end: int, queued: int, timeline: "_Timeline", tagged: bool) -> Completion:
        if output.finish_reason not in ("stop", "length"):
            raise SystemFailure(f"vLLM ended a request with {output.finish_reason}")
        return Completion(
            tokens=list(output.token_ids),
            logprobs=[min(value, 0.0) for value in output.logprobs.logprobs],
            stop_reason="eos" if output.finish_reason == "stop" else "length",
            stop_source="reported",
            t_queued=queued,
            t_start=timeline.start,
            t_first=timeline.first,
            t_end=end,
            versions=_versions(output) if tagged else None,
        )


@dataclass
class _Timeline:
    prompt_tokens: int
    start: int = 0
    first: int = 0


class _Watch:
    """Reads what the scheduler puts into each forward pass; nothing in it is changed."""

    def __init__(self, scheduler: Any) -> None:
        self._timelines: dict[str, _Timeline] = {}
        self._planned: Any = None
        self._planned_at = 0
        plan = scheduler.schedule

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._planned_at = time.perf_counter_ns()
            self._planned = plan(*args, **kwargs)
            return self._planned

        scheduler.schedule = watched

    def expect(self, name: str, prompt_tokens: int) -> None:
        """A request was queued."""
        self._timelines[name] = _Timeline(prompt_tokens)

    def of(self, name: str) -> _Timeline:
        """The timeline of a request."""
        return self._timelines[name]

    def forget(self) -> None:
        """All requests so far are done with."""
        self._timelines = {}

    def tick(self, clock: PhaseClock) -> int:
        """The planned pass has just ended; tell the clock what it was. Returns the time of its end."""
        plan = self._planned
        passes = {request.req_id: (request.num_computed_tokens, 0) for request in plan.scheduled_new_reqs}
        for name in passes:
            self._timelines[name].start = self._planned_at
        cached = plan.scheduled_cached_reqs
        before = zip(cached.num_computed_tokens, cached.num_output_tokens, strict=True)
        passes |= dict(zip(cached.req_ids, before, strict=True))
        tokens = plan.num_scheduled_tokens
        # A request that was put back computes its prompt and what it had sampled in one pass, or in several.
        whole = {name: self._timelines[name].prompt_tokens + sampled for name, (_, sampled) in passes.items()}
        samples = [name for name, (computed, _) in passes.items() if computed + tokens[name] >= whole[name]]
        on_prompt = [name for name, (computed, sampled) in passes.items() if not sampled or computed < whole[name] - 1]
        computed_tokens = sum(tokens[name] for name in on_prompt)
        end = clock.step(len(on_prompt), len(passes) - len(on_prompt), computed_tokens, len(samples))
        for name in samples:
            self._timelines[name].first = self._timelines[name].first or end
        return end


def _versions(output: Any) -> list[int]:
    """The policy version of each token, as the engine tagged them."""
    versions = [int(span.version) for span in output.weight_versions for _ in range(span.start, span.end)]
    if len(versions) != len(output.token_ids):
        raise SystemFailure(f"vLLM tagged {len(versions)} of {len(output.token_ids)} tokens with their version")
    return versions


def _sampling(decoding: Decoding, eos: int, max_tokens: int) -> SamplingParams:
    """End-of-sequence is passed as a stop token: `ignore_eos` alone decides by the checkpoint's own list of them."""
    return SamplingParams(
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        top_k=decoding.top_k,
        min_p=decoding.min_p,
        max_tokens=max_tokens,
        ignore_eos=True,
        stop_token_ids=[eos] if decoding.stop_at_eos else [],
        logprobs=0,
        flat_logprobs=True,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _cache_bytes(model: Any, sequences: int, longest: int) -> int:
    """`2 L H_kv d_h N_tok b` for all sequences at their longest [12.2.3], in whole blocks."""
    config = model.config.get_text_config()
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    blocks = (sequences + 1) * (math.ceil(longest / BLOCK_TOKENS) + 1)
    needed = 2 * config.num_hidden_layers * config.num_key_value_heads * head * blocks * BLOCK_TOKENS * 4
    return max(needed, MIN_CACHE_BYTES)
