"""The embedded engine: transformers' continuous batching over the trained module itself, or over a replica's own.

What the library gives: log-probs of the processed scores, that is of the distribution really sampled; a group's prompt
prefilled once (all but its last token, then forked: each copy computes the last prompt token and samples); weights
changed in place. What is added here: the clock around its engine step.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig
from transformers.generation.continuous_batching.continuous_api import ContinuousBatchingManager

from adapters.reference.engine import Completion, Finished, Generation, PhaseClock
from adapters.reference.settings import Decoding, Settings
from harness.errors import HarnessBug, SystemFailure
from harness.probe.hooks import HookPoint

API = "transformers.generation.continuous_batching.continuous_api"
REQUESTS = "transformers.generation.continuous_batching.requests"
HOOKS = (
    HookPoint(f"{API}:ContinuousBatchingManager._generation_step", "decode", "one forward pass and its sampling"),
    HookPoint(f"{API}:ContinuousBatchingManager.pause", "weight_sync", "no request is in flight while one is added"),
    HookPoint(
        f"{API}:ContinuousBatchingManager.add_requests",
        "tokens",
        "submits prompts",
        ("inputs", "max_new_tokens", "record_timestamps"),
    ),
    HookPoint(f"{API}:ContinuousBatchingManager.get_result", "tokens", "tokens, log-probs, times", ("timeout",)),
    HookPoint(f"{REQUESTS}:FutureRequestState.query_length", "prefill", "tokens of a request in a forward pass"),
    HookPoint(f"{REQUESTS}:FutureRequestState.has_new_token", "decode", "whether it samples in that pass"),
    HookPoint(f"{REQUESTS}:RequestState.generated_len", "decode", "whether it is past its prompt"),
    HookPoint(f"{REQUESTS}:RequestState.timestamps", "decode", "when each token was sampled"),
)

PAGE_TOKENS = 16
# The scheduler holds new prompts back while less than 15 % of the cache is free.
CACHE_MARGIN = 1.25
RESULT_SECONDS = 600.0
CHILD = "__child#"


class _TimedManager(ContinuousBatchingManager):
    """The library's manager, whose engine steps tick a clock."""

    clock = PhaseClock()

    def _generation_step(self) -> None:
        super()._generation_step()
        requests = self.batch_processor.inputs_and_outputs.requests_in_batch
        on_prompt = [request for request in requests if request.state.generated_len() == 0]
        self.clock.step(
            prefilling=len(on_prompt),
            decoding=len(requests) - len(on_prompt),
            input_tokens=sum(request.query_length for request in on_prompt),
            output_tokens=sum(request.has_new_token for request in requests),
        )


class TransformersEngine:
    """Continuous batching over `model`; no other thread may use the model while `generate` runs."""

    name = "transformers.continuous_batching"

    def __init__(self, settings: Settings, model: Any, longest_prompt: int, eos: int, *, shared: bool) -> None:
        """`longest_prompt` is in tokens, `eos` the id of the end-of-sequence token; `shared` says that `model` is the
        trained module itself."""
        self._model, self._decoding, self._eos = model, settings.decoding, eos
        self.publication_kind = "shared" if shared else settings.publication
        self._whole = settings.publication != "adapter"
        longest = longest_prompt + settings.decoding.max_tokens
        self._manager = _TimedManager(
            model=model,
            generation_config=_generation_config(settings.decoding, eos),
            continuous_batching_config=_batching_config(settings.batch_size, longest),
        )
        self._manager.start()
        # The thread seeds torch's generator when it sets itself up; it has done so once it can be paused.
        with self._manager.pause():
            pass

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        n: int,
        max_tokens: int,
        between: Callable[[], bool] | None = None,
        finished: Finished | None = None,
    ) -> Generation:
        """See `Engine.generate`. The library keeps what requests in flight computed with the old weights, so that
        nothing may come between two passes."""
        if between is not None:
            raise HarnessBug("continuous batching cannot change weights under a request")
        self._model.eval()
        manager = self._manager
        manager.num_return_sequences = n
        manager.clock = clock = PhaseClock()
        # Paused, so that the loop sees all requests at once: which of them share a forward pass, and with it the order
        # of the random draws, is then the same in every run.
        with manager.pause():
            names = manager.add_requests(
                [list(prompt) for prompt in prompts], max_new_tokens=max_tokens, record_timestamps=True
            )
        groups = self._collect({name: number for number, name in enumerate(names)}, n, finished)
        return Generation(groups, clock.stop())

    def publish(self, weights: Iterable[tuple[str, Any]], version: int) -> int:  # noqa: ARG002 (one version a request)
        """Serve from these tensors: nothing to do where the module is the trainer's own, the parameters point at them
        on a CPU, and elsewhere they are copied. The cache holds no block of a finished request, because blocks are not
        shared between requests.

        Raises:
            SystemFailure: they are not the module's; it is as it was.
        """
        if self.publication_kind == "shared":
            return 0
        held, given = dict(self._model.named_parameters()), dict(weights)
        wrong = [name for name, tensor in given.items() if name not in held or held[name].shape != tensor.shape]
        if wrong or (self._whole and len(given) != len(held)):
            raise SystemFailure(f"a publication does not fit the module: {wrong or set(held) - set(given)}")
        with self._manager.pause(), torch.no_grad():
            for name, tensor in given.items():
                if held[name].device == tensor.device and held[name].dtype == tensor.dtype:
                    held[name].data = tensor
                else:
                    held[name].copy_(tensor)
        return sum(tensor.numel() * tensor.element_size() for tensor in given.values())

    def close(self) -> None:
        """Stop the engine's thread."""
        self._manager.stop(block=True)

    def _collect(self, numbers: dict[str, int], n: int, finished: Finished | None) -> list[list[Completion]]:
        """The completions by the numbers of their prompts' requests; each group is told of when it is whole."""
        outputs: dict[str, dict[str, Any]] = {name: {} for name in numbers}
        groups: dict[int, list[Completion]] = {}
        deadline = time.monotonic() + RESULT_SECONDS
        while len(groups) < len(numbers):
            output = self._manager.get_result(timeout=1.0)
            if output is not None and output.error is not None:
                raise SystemFailure(f"continuous batching failed request {output.request_id}: {output.error}")
            if output is not None:
                name = output.request_id.split(CHILD)[0]
                outputs[name][output.request_id] = output
                if len(outputs[name]) == n:
                    groups[numbers[name]] = [self._completion(outputs[name], name, n, index) for index in range(n)]
                    if finished is not None:
                        finished(numbers[name], groups[numbers[name]])
            elif not self._manager.is_running() or time.monotonic() > deadline:
                fatal = self._manager.background_thread_status.fatal_error
                raise SystemFailure(f"continuous batching returned {len(groups)} of {len(numbers)} groups: {fatal}")
        return [groups[number] for number in range(len(numbers))]

    def _completion(self, outputs: dict[str, Any], name: str, n: int, index: int) -> Completion:
        # The group's own request is its last member; its copies are called `name__child#0`, `#1`, ...
        output = outputs[name if index == n - 1 else f"{name}{CHILD}{index}"]
        queued = outputs[name].created_time
        start = outputs[name].lifespan[0]
        ends_with_eos = self._decoding.stop_at_eos and output.generated_tokens[-1] == self._eos
        return Completion(
            tokens=output.generated_tokens,
            logprobs=[min(value, 0.0) for value in output.logprobs],
            stop_reason="eos" if ends_with_eos else "length",
            stop_source="derived",
            t_queued=_ns(queued),
            t_start=_ns(start),
            t_first=_ns(output.timestamps[0]),
            t_end=_ns(output.timestamps[-1]),
        )


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _generation_config(decoding: Decoding, eos: int) -> GenerationConfig:
    """Every knob spelt out: the library's own default of `top_k` is 50. An end-of-sequence id of -1 never stops."""
    return GenerationConfig(
        do_sample=True,
        temperature=decoding.temperature,
        top_k=decoding.top_k,
        top_p=decoding.top_p,
        min_p=decoding.min_p or None,
        max_new_tokens=decoding.max_tokens,
        eos_token_id=eos if decoding.stop_at_eos else -1,
        pad_token_id=0,
    )


def _batching_config(most: int, longest: int) -> ContinuousBatchingConfig:
    """A cache for `most` sequences of `longest` tokens. Blocks are not shared between requests: shared ones outlive a
    change of weights and would serve the old ones' keys and values."""
    blocks = most * (math.ceil(longest / PAGE_TOKENS) + 1)
    return ContinuousBatchingConfig(
        page_size=PAGE_TOKENS,
        num_blocks=math.ceil(blocks * CACHE_MARGIN),
        max_batch_tokens=max(most, longest, 1024),
        max_requests_per_batch=most,
        allow_block_sharing=False,
        return_logprobs=True,
        auto_switch_to_flash=False,
        use_async_batching=False,
        use_cuda_graph=False,
    )
