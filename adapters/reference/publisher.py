"""The publisher: gives every replica the trainer's weights, and proves that they serve them [12.4.5]."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.reference.engine import Completion
from adapters.reference.messages import Receipt, Shipment
from adapters.reference.settings import Settings
from harness.errors import SystemFailure
from harness.probe import Probe

CONTROL_PROMPTS = 2
CONTROL_TOKENS = 4
TOLERANCE = 1e-4


class Sender(Protocol):
    """The trainer's side of a publication."""

    @property
    def version(self) -> int:
        """Optimizer steps applied to the weights."""
        ...

    def ship(self, number: int) -> Shipment:
        """The current weights as publication `number`, ready to be taken."""
        ...

    def sampled_logprobs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """[S][T] log-probs of (prompt, completion) pairs under the distribution that the decoding rule samples from."""
        ...


class Receivers(Protocol):
    """The replicas' side: each call asks all of them, and each list has one entry a replica."""

    @property
    def replicas(self) -> int:
        """How many there are."""
        ...

    def stage(self, shipment: Shipment) -> list[Receipt]:
        """Take the tensors in and check their digest, beside what is served now."""
        ...

    def activate(self, shipment: Shipment) -> list[Receipt]:
        """Serve what was staged, from the next request on."""
        ...

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[list[Completion]]:
        """One completion a control prompt, from each replica."""
        ...


@dataclass(frozen=True)
class _Ended:
    """How a publication went: whether it is served, by how many, and the control gap where it was checked."""

    ok: bool
    acknowledged: int
    gap: float | None
    detail: str


class Publisher:
    """Publishes, and at the first and each `verify_every`-th publication has the replicas answer control prompts: their
    log-probs must be those of the trainer's weights (float32, zero lag), on which checksums and status codes say
    nothing. `published` is the newest publication's number, -1 before the first; `policy_version` is its weights'."""

    def __init__(
        self, sender: Sender, receivers: Receivers, prompts: Sequence[list[int]], settings: Settings, probe: Probe
    ) -> None:
        self._sender, self._receivers, self._probe = sender, receivers, probe
        self._control = list(prompts[:CONTROL_PROMPTS])
        self._settings = settings
        self.published = self.policy_version = -1

    def publish(self) -> float | None:
        """Publish the trainer's current weights; returns the largest difference of a control log-prob, if checked.

        Raises:
            SystemFailure: a replica does not serve the weights that it was given.
        """
        number, start = self.published + 1, time.perf_counter_ns()
        shipment = self._sender.ship(number)
        ended = self._hand_over(shipment)
        self._probe.publication(
            published_version=number,
            policy_version=shipment.policy_version,
            t_start=start,
            t_end=time.perf_counter_ns(),
            kind=shipment.kind,
            bytes=shipment.bytes,
            replicas=self._receivers.replicas,
            acknowledged=ended.acknowledged,
            tensor_hash=shipment.digest,
            verified=None if ended.gap is None else ended.gap <= TOLERANCE,
            ok=ended.ok,
            detail=ended.detail or None,
        )
        if not ended.ok:
            raise SystemFailure(f"publication {number}: {ended.detail}")
        self.published, self.policy_version = number, shipment.policy_version
        return ended.gap

    def control_gap(self) -> float:
        """The largest |difference| between any replica's and the trainer's log-probs on freshly sampled control tokens.

        Both are of the distribution really sampled, so that truncation is no mismatch. Not a number, if either is.
        """
        tokens = min(CONTROL_TOKENS, self._settings.decoding.max_tokens)
        gaps = []
        for answers in self._receivers.control(self._control, tokens):
            pairs = [(prompt, answer.tokens) for prompt, answer in zip(self._control, answers, strict=True)]
            ours = [value for row in self._sender.sampled_logprobs(pairs) for value in row]
            theirs = [value for answer in answers for value in answer.logprobs if value is not None]
            gaps += [abs(one - other) for one, other in zip(ours, theirs, strict=True)]
        return max(gaps, key=lambda gap: (gap != gap, gap))

    def _hand_over(self, shipment: Shipment) -> _Ended:
        for receipts in (self._receivers.stage(shipment), self._receivers.activate(shipment)):
            if refused := [receipt for receipt in receipts if not receipt.ok]:
                detail = f"replica {refused[0].replica}: {refused[0].detail}"
                return _Ended(False, len(receipts) - len(refused), None, detail)
        if shipment.number % self._settings.verify_every:
            return _Ended(True, self._receivers.replicas, None, "")
        gap = self.control_gap()
        if not gap <= TOLERANCE:
            detail = f"control log-probs differ by {gap:.3g}, more than {TOLERANCE:g}"
            return _Ended(False, self._receivers.replicas, gap, detail)
        return _Ended(True, self._receivers.replicas, gap, f'{{"control_logprob_gap": {gap:.3g}}}')
