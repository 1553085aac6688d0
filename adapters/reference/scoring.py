"""Text and reward of samples: the loop's side of the task's verifier."""

from collections.abc import Sequence
from typing import Any

from adapters.reference.samples import Sample
from harness.probe import Probe
from harness.task.verifier import Verifier


class Scorer:
    """Decodes completions and has them scored; a verdict that was not reached is a fault and never a reward."""

    def __init__(self, verifier: Verifier, tokenizer: Any, probe: Probe) -> None:
        self._verifier, self._tokenizer, self._probe = verifier, tokenizer, probe

    def score(self, samples: Sequence[Sample]) -> None:
        """Fill in `text` and `verdict`. Raises SystemFailure if no verifier will run."""
        tokens = [sample.completion.tokens for sample in samples]
        texts = self._tokenizer.batch_decode(tokens, skip_special_tokens=True)
        asked = [(sample.prompt.prompt_id, text) for sample, text in zip(samples, texts, strict=True)]
        for sample, text, verdict in zip(samples, texts, self._verifier.score(asked), strict=True):
            sample.text, sample.verdict = text, verdict
            if verdict.status == "error":
                detail = verdict.detail or "no verdict"
                self._probe.fault("verifier_error", "infrastructure", "verifier", detail, sample_id=sample.sample_id)
