"""Observes whoever generates: the trained module by transformers' `generate`, or vLLM. Wraps live on the instances."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import StoppingCriteriaList

from adapters.trl.sampling import SamplingRecorder
from adapters.trl.stages import StageClock


@dataclass
class Generation:
    """What one call of the engine left: log-probs (rows x steps, None where vLLM reports them itself) and boundaries in
    perf_counter_ns."""

    logprobs: torch.Tensor | None = None
    t_start: int = 0
    t_first_token: int | None = None
    t_end: int = 0


class GenerateEngine:
    """Transformers' `generate` on the trained module: prefill and decode apart, log-probs of what was sampled."""

    logprob_kind = "sampled_distribution"

    def __init__(self, model: Any, clock: StageClock) -> None:
        self._clock = clock
        self._recorder: SamplingRecorder | None = None
        self._generate: Callable[..., torch.Tensor] = model.generate
        self._processors: Callable[..., list[Any]] = model._get_logits_processor
        self.nanoseconds = 0
        self.last = Generation()
        model.generate = self.generate
        model._get_logits_processor = self._with_recorder

    def _with_recorder(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The processors that transformers built, and after all of them the recorder."""
        processors = self._processors(*args, **kwargs)
        if self._recorder is not None:
            processors.append(self._recorder.see_scores)
        return processors

    def generate(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """In place of `model.generate`; the same arguments, the same result (rows x (prompt + steps))."""
        rows, prompt = kwargs["input_ids"].shape
        read = int(kwargs["attention_mask"].sum())
        self._recorder = SamplingRecorder(rows, self._first_token)
        criteria = StoppingCriteriaList([self._recorder.see_token])
        self.last = Generation(t_start=self._clock.enter("prefill"))
        padded = rows * prompt - read
        self._clock.count(records=rows, input_tokens=read, output_tokens=rows, padded_tokens=padded, forwards=1)
        try:
            sequences = self._generate(*args, stopping_criteria=criteria, **kwargs)
            self.last.t_end = self._clock.boundary()
            self._count_decoding(sequences[:, prompt:], kwargs["generation_config"].eos_token_id)
            self._clock.enter("batch_assembly", at=self.last.t_end)
            with self._clock.aside():
                self.last.logprobs = self._recorder.logprobs(sequences[:, prompt:])
        finally:
            self.nanoseconds += self._recorder.nanoseconds
            self._recorder = None
        return sequences

    def _count_decoding(self, completion_ids: torch.Tensor, ends: list[int]) -> None:
        """Tokens up to each row's end, and slots computed on rows that had ended (the first token is prefill's)."""
        rows, steps = completion_ids.shape
        before = torch.isin(completion_ids, torch.tensor(ends, device=completion_ids.device)).cumsum(1)
        sampled = rows + int((before[:, :-1] == 0).sum())
        padded = rows * steps - sampled
        self._clock.count(records=rows, output_tokens=sampled - rows, padded_tokens=padded, forwards=steps - 1)

    def _first_token(self) -> None:
        self.last.t_first_token = self._clock.enter("decode")


class VllmEngine:
    """vLLM as TRL drives it: generation as one stage (TRL drops the engine's own timings), weight pushes, sleep."""

    def __init__(self, vllm_generation: Any, clock: StageClock, on_push: Callable[[int, int], None]) -> None:
        self.nanoseconds = 0
        self.last = Generation()
        self.logprob_kind = _logprob_kind(vllm_generation)
        self._clock, self._on_push = clock, on_push
        self._generate, self._sync = vllm_generation.generate, vllm_generation.sync_weights
        vllm_generation.generate = self.generate
        vllm_generation.sync_weights = self.sync_weights
        if vllm_generation.mode == "colocate" and vllm_generation.enable_sleep_mode:
            for name in ("wake_up", "sleep"):
                setattr(vllm_generation.llm, name, self._transition(getattr(vllm_generation.llm, name)))

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """In place of `VLLMGeneration.generate`."""
        self.last = Generation(t_start=self._clock.enter("generate"))
        values = self._generate(*args, **kwargs)
        self.last.t_end = self._clock.boundary()
        prompts, completions = values[0], values[1]
        sampled, read = sum(map(len, completions)), sum(map(len, prompts))
        self._clock.count(records=len(completions), input_tokens=read, output_tokens=sampled)
        self._clock.enter("batch_assembly", at=self.last.t_end)
        return values

    def sync_weights(self) -> None:
        """In place of `VLLMGeneration.sync_weights`: one publication."""
        before = self._clock.stage
        start = self._clock.enter("weight_sync")
        try:
            self._sync()
        finally:
            end = self._clock.enter(before)
        # Before a first generation and after sleep, TRL pushes from within `generate`.
        self.last.t_start = end
        self._on_push(start, end)

    def _transition(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Waking and sleeping move weights and cache between devices: TRL's own profile covers neither."""

        def observed(*args: Any, **kwargs: Any) -> Any:
            before = self._clock.stage
            self._clock.enter("weight_sync")
            try:
                return call(*args, **kwargs)
            finally:
                self._clock.enter(before)

        return observed


def _logprob_kind(vllm_generation: Any) -> str:
    """TRL starts its in-process engine with processed log-probs; a server says what it was started with."""
    if vllm_generation.mode == "colocate":
        return "sampled_distribution"
    mode = vllm_generation.vllm_client.get_server_info()["model_config"]["logprobs_mode"]
    return "sampled_distribution" if mode == "processed_logprobs" else "raw_softmax"


def parameter_bytes(model: Any) -> int:
    """Bytes of all parameters: what a full push moves."""
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
