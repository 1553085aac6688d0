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
class Prepared:
    """A publication that was shipped and staged, and is not served yet.

    Attributes:
        t_start: when it was begun (perf_counter_ns).
        holding: how many replicas hold it; `refusal` says why the first of the others does not, or is empty.
    """

    shipment: Shipment
    t_start: int
    holding: int
    refusal: str


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
        """Prepare and commit at once; see both."""
        return self.commit(self.prepare())

    def prepare(self) -> Prepared:
        """Ship the trainer's current weights and have every replica take them in beside what it serves. Replicas may
        answer requests meanwhile, and the trainer may go on once this returns."""
        number, start = self.published + 1, time.perf_counter_ns()
        shipment = self._sender.ship(number)
        receipts = self._receivers.stage(shipment)
        return Prepared(shipment, start, sum(receipt.ok for receipt in receipts), _refusal(receipts))

    def commit(self, prepared: Prepared) -> float | None:
        """Have every replica serve what was prepared; no replica may have a request in flight. Returns the largest
        difference of a control log-prob, if checked: then the trainer must still be at the published version. A
        publication that a replica refused is written as such, and the old version keeps being served.

        Raises:
            SystemFailure: a replica does not serve the weights that it was given.
        """
        if prepared.refusal:
            self._write(prepared, prepared.holding, None, prepared.refusal)
            self._probe.fault("publication_refused", "system", "publisher", prepared.refusal)
            return None
        receipts = self._receivers.activate(prepared.shipment)
        served, refusal = sum(receipt.ok for receipt in receipts), _refusal(receipts)
        gap = None if refusal or not self.verifies(prepared) else self.control_gap()
        if gap is not None and not gap <= TOLERANCE:
            refusal = f"control log-probs differ by {gap:.3g}, more than {TOLERANCE:g}"
        self._write(prepared, served, gap, refusal)
        if refusal:
            raise SystemFailure(f"publication {prepared.shipment.number}: {refusal}")
        self.published, self.policy_version = prepared.shipment.number, prepared.shipment.policy_version
        return gap

    def verifies(self, prepared: Prepared) -> bool:
        """Whether `commit` will compare control log-probs."""
        return prepared.shipment.number % self._settings.verify_every == 0

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

    def _write(self, prepared: Prepared, acknowledged: int, gap: float | None, refusal: str) -> None:
        shipment = prepared.shipment
        self._probe.publication(
            published_version=shipment.number,
            policy_version=shipment.policy_version,
            t_start=prepared.t_start,
            t_end=time.perf_counter_ns(),
            kind=shipment.kind,
            bytes=shipment.bytes,
            replicas=self._receivers.replicas,
            acknowledged=acknowledged,
            tensor_hash=shipment.digest,
            verified=None if gap is None else gap <= TOLERANCE,
            ok=not refusal,
            detail=refusal or (None if gap is None else f'{{"control_logprob_gap": {gap:.3g}}}'),
        )


def _refusal(receipts: Sequence[Receipt]) -> str:
    return next((f"replica {receipt.replica}: {receipt.detail}" for receipt in receipts if not receipt.ok), "")
