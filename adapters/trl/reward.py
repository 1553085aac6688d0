"""The bundle's verifier as a TRL reward function."""

from collections.abc import Sequence
from typing import Any

from harness.task.verifier import Verdict, Verifier


class VerifierReward:
    """Scores completions in the verifier's own process.

    A verdict that could not be reached becomes None, which TRL turns into NaN: it leaves the row out of its group's
    baseline and gives it an advantage of 0 (trl/trainer/grpo_trainer.py, `unscorable_mask`).
    """

    __name__ = "verifier"

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.last_texts: list[str] = []
        self.last_verdicts: list[Verdict] = []

    def __call__(self, completions: Sequence[Any], prompt_id: Sequence[str], **_: Any) -> list[float | None]:
        """One reward a completion; `prompt_id` is a column of the data set, repeated for each completion."""
        self.last_texts = [_text(completion) for completion in completions]
        self.last_verdicts = self._verifier.score(list(zip(prompt_id, self.last_texts, strict=True)))
        return [verdict.reward_total for verdict in self.last_verdicts]


def _text(completion: Any) -> str:
    """What the model wrote: TRL gives text for a text prompt, a list of messages for a conversation."""
    return completion if isinstance(completion, str) else str(completion[0]["content"] or "")
