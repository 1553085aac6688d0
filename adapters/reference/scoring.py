"""Text and reward of completions: the loop's side of the task's verifier."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Protocol

from adapters.reference.messages import Scoring
from adapters.reference.samples import Sample
from harness.probe import Probe
from harness.task.turns import join_turns, transcript
from harness.task.verifier import Verdict, Verifier


class Scorer(Protocol):
    """Scores completions; `LocalScorer` in this process, a pool of actors elsewhere."""

    def score(self, asked: Scoring) -> list[tuple[str, Verdict]]:
        """Joined turns and verdict of each item, in order. Raises SystemFailure if no verifier will run."""
        ...


class LocalScorer:
    """Decodes and scores in this process; the verifier's worker is a process of its own."""

    def __init__(self, verifier: Verifier, tokenizer: Any, probe: Probe) -> None:
        self._verifier, self._tokenizer, self._probe = verifier, tokenizer, probe

    def score(self, asked: Scoring) -> list[tuple[str, Verdict]]:
        """See `Scorer.score`."""
        where: dict[str, Any] = {"policy_version": asked.policy_version, "step": asked.step}
        with self._probe.span("verifier", trace_id=asked.trace_id, **where) as span:
            texts = self._texts([turns for _, turns in asked.items])
            named = [(prompt_id, text) for (prompt_id, _), text in zip(asked.items, texts, strict=True)]
            verdicts = self._verifier.score(named)
            span.records = len(verdicts)
        return list(zip(texts, verdicts, strict=True))

    def _texts(self, completions: Sequence[Sequence[list[int]]]) -> list[str]:
        every = [tokens for turns in completions for tokens in turns]
        texts = iter(self._tokenizer.batch_decode(every, skip_special_tokens=True))
        return [join_turns(list(islice(texts, len(turns)))) for turns in completions]


def judge(samples: Sequence[Sample], scorer: Scorer, step: int, probe: Probe) -> None:
    """Fill in `text` and `verdict` of one batch's samples; a verdict not reached is a fault, never a reward."""
    items = [(sample.prompt.prompt_id, sample.completion.turns) for sample in samples]
    asked = Scoring(items, samples[0].trace_id, samples[0].policy_version, step)
    for sample, (text, verdict) in zip(samples, scorer.score(asked), strict=True):
        sample.text, sample.verdict = transcript(text, sample.prompt.observations), verdict
        if verdict.status == "error":
            detail = verdict.detail or "no verdict"
            probe.fault("verifier_error", "infrastructure", "verifier", detail, sample_id=sample.sample_id)
