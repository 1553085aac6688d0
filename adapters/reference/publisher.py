"""The publisher: gives the engine the trainer's weights, and proves that it serves them [12.4.5]."""

import time
from collections.abc import Sequence

import torch

from adapters.reference.batches import pack
from adapters.reference.engine import Engine
from adapters.reference.policy import policy_logits, sampled_logprobs
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer
from harness.errors import SystemFailure
from harness.probe import Probe

CONTROL_PROMPTS = 2
CONTROL_TOKENS = 4
TOLERANCE = 1e-4


class Publisher:
    """Publishes, and at the first and each `verify_every`-th publication has the engine answer control prompts: its
    log-probs must be those of the trainer's weights (float32, zero lag), on which checksums and status codes say
    nothing. `published` is the newest publication's number, -1 before the first."""

    def __init__(
        self, engine: Engine, trainer: Trainer, prompts: Sequence[list[int]], settings: Settings, probe: Probe
    ) -> None:
        self._engine, self._trainer, self._probe = engine, trainer, probe
        self._control = list(prompts[:CONTROL_PROMPTS])
        self._settings = settings
        self.published = -1

    def publish(self) -> float | None:
        """Publish the trainer's current weights; returns the largest difference of a control log-prob, if checked.

        Raises:
            SystemFailure: the engine does not serve the weights that it was given.
        """
        number = self.published + 1
        start = time.perf_counter_ns()
        moved = self._engine.publish(self._trainer.weights())
        gap = self.control_gap() if number % self._settings.verify_every == 0 else None
        verified = None if gap is None else gap <= TOLERANCE
        self._probe.publication(
            published_version=number,
            policy_version=self._trainer.version,
            t_start=start,
            t_end=time.perf_counter_ns(),
            kind=self._engine.publication_kind,
            bytes=moved,
            replicas=1,
            acknowledged=1,
            tensor_hash=None,
            verified=verified,
            ok=verified is not False,
            detail=None if gap is None else f'{{"control_logprob_gap": {gap:.3g}}}',
        )
        if verified is False:
            raise SystemFailure(f"publication {number}: control log-probs differ by {gap:.3g}, more than {TOLERANCE:g}")
        self.published = number
        return gap

    def control_gap(self) -> float:
        """The largest |difference| between the engine's and the trainer's log-probs on freshly sampled control tokens.

        Both are of the distribution really sampled, so that truncation is no mismatch. Not a number, if either is.
        """
        tokens = min(CONTROL_TOKENS, self._settings.decoding.max_tokens)
        groups = self._engine.generate(self._control, 1, tokens).groups
        answers = [group[0] for group in groups]
        pairs = [(prompt, answer.tokens) for prompt, answer in zip(self._control, answers, strict=True)]
        packed = pack(pairs, pad=0, device=self._settings.device)
        with torch.no_grad():
            logits = policy_logits(self._trainer.model, packed)
            ours = sampled_logprobs(logits, packed.targets, self._settings.decoding)
        theirs = torch.tensor([value for answer in answers for value in answer.logprobs], device=ours.device)
        return float((ours - theirs).abs().max())
