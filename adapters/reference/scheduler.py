"""The prompt scheduler: which prompts each generated batch asks, and the ids they are traced by [12.1.1, 12.5.2]."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.reference.settings import Settings
from harness.errors import UserError
from harness.task.bundle import Prompt


class PromptScheduler:
    """Batch k takes the next `prompts_per_batch` prompts in file order, cyclically, from the batch `origin` on."""

    def __init__(self, prompts: Sequence[Prompt], settings: Settings) -> None:
        """Raises UserError where a batch would ask one prompt twice: its samples could not be told apart."""
        if settings.prompts_per_batch > len(prompts):
            raise UserError(
                f"task.prompts_per_batch={settings.prompts_per_batch}, but the bundle has {len(prompts)} prompts"
            )
        self._prompts = prompts
        self._size = settings.prompts_per_batch
        self._origin = 0

    def batch(self, number: int) -> list[Prompt]:
        """The prompts of generated batch `number`, counted from 0."""
        first = self.cursor(number)
        return [self._prompts[(first + offset) % len(self._prompts)] for offset in range(self._size)]

    def cursor(self, number: int) -> int:
        """The place in the file of a batch's first prompt."""
        return (number - self._origin) * self._size % len(self._prompts)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"order": "file", "origin": self._origin}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self._origin = state["origin"]
