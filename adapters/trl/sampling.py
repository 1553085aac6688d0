"""Log-probs of the distribution that transformers' `generate` really sampled from.

`GenerationMixin._sample` draws from softmax(processed scores); the recorder is the last logits processor, so it sees
those scores after temperature, top-k, top-p and minimum length, and a stopping criterion, so it sees the token drawn.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from harness.probe.hooks import HookDrift

HOLD_BYTES = 4 * 2**20
"""Scores held before they are reduced to one number a token: a small vocabulary costs one reduction a batch, a large
one is reduced step by step, so that no memory of the size of the logits is held on to."""


class SamplingRecorder:
    """The sampled tokens' log-probs of one call of `generate`."""

    def __init__(self, rows: int, on_first_token: Callable[[], None]) -> None:
        self.nanoseconds = 0
        self._on_first_token = on_first_token
        self._scores: list[torch.Tensor] = []
        self._tokens: list[torch.Tensor] = []
        self._reduced: list[torch.Tensor] = []
        self._never_stop: torch.Tensor | None = None
        self._rows = rows
        self._held = 0

    def see_scores(self, _input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Logits processor: keeps `scores` (rows x vocabulary, float32) and hands them on unchanged."""
        self._scores.append(scores)
        return scores

    def see_token(self, input_ids: torch.Tensor, _scores: Any, **_: Any) -> torch.Tensor:
        """Stopping criterion that never stops: reads the token that was just appended to `input_ids`."""
        start = time.perf_counter_ns()
        if self._never_stop is None:
            self._never_stop = torch.zeros(self._rows, dtype=torch.bool, device=input_ids.device)
            self._on_first_token()
        self._tokens.append(input_ids[:, -1])
        self._held += self._scores[-1].nbytes
        if self._held > HOLD_BYTES:
            self._reduce()
        self.nanoseconds += time.perf_counter_ns() - start
        return self._never_stop

    def logprobs(self, completion_ids: torch.Tensor) -> torch.Tensor:
        """Log-probs of `completion_ids`, what `generate` returned past the prompt: both rows x steps; float32.

        Tokens after a row's end hold no meaning.

        Raises:
            HookDrift: `generate` sampled other tokens than it let the recorder see.
        """
        start = time.perf_counter_ns()
        seen = torch.stack(self._tokens, dim=1) if self._tokens else completion_ids.new_empty((self._rows, 0))
        if not torch.equal(seen, completion_ids):
            raise HookDrift("hook drift: generate returned other tokens than its stopping criteria saw")
        self._reduce()
        found = torch.cat(self._reduced).T.cpu()
        self.nanoseconds += time.perf_counter_ns() - start
        return found

    def _reduce(self) -> None:
        """Append log softmax(scores)[token] of the held steps (steps x rows)."""
        done = sum(len(part) for part in self._reduced)
        if len(self._scores) + done != len(self._tokens):
            raise HookDrift("hook drift: generate sampled a token without asking its logits processors")
        if not self._scores:
            return
        scores = torch.stack(self._scores).float()
        chosen = scores.gather(-1, torch.stack(self._tokens[done:]).unsqueeze(-1)).squeeze(-1)
        # Rounding may leave a sampled token with a log-prob of +1e-7 where it holds all the mass.
        self._reduced.append((chosen - scores.logsumexp(-1)).clamp(max=0.0))
        self._scores.clear()
        self._held = 0
