"""The publisher: gives every replica the trainer's weights, and proves that they serve them [12.4.5].

Two phases. Every replica takes the weights in beside those that it serves and checks their digest; only when all have
them does any serve them. Whatever goes wrong before that leaves the old version served, and the loop goes on with it.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from adapters.reference.cluster import ActorLost
from adapters.reference.messages import Answer, Receipt, Shipment
from adapters.reference.settings import Settings
from harness.errors import SystemFailure
from harness.probe import Probe

CONTROL_PROMPTS = 2
CONTROL_TOKENS = 16
TOLERANCE = 1e-4


class Sender(Protocol):
    """The trainer's side of a publication."""

    @property
    def version(self) -> int:
        """Optimizer steps applied to the weights."""
        ...

    def ship(self, number: int) -> Shipment:
        """The current weights as publication `number`, ready to be taken. What publication `number - 1` consists of
        stays as it is. Raises OSError or SystemFailure where it could not be made."""
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

    def revert(self, shipment: Shipment) -> list[Receipt]:
        """Serve what was served before that shipment, if it is served."""
        ...

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[Answer]:
        """One completion a control prompt, each a group of its own."""
        ...


@dataclass(frozen=True)
class Prepared:
    """A publication that was shipped and staged, and is not served yet.

    Attributes:
        shipment: None where the trainer could not make it.
        policy_version: of the weights.
        t_start: when it was begun (perf_counter_ns).
        seconds: what shipping and staging took.
        refusal: why it must not be served; empty where every replica holds it.
    """

    number: int
    shipment: Shipment | None
    policy_version: int
    t_start: int
    seconds: dict[str, float]
    refusal: str


@dataclass
class Outcome:
    """How a publication went.

    Attributes:
        refused: why it is not served, and all replicas serve the one before it; empty where all serve this one.
        gap: the largest difference of a control log-prob, where they were checked.
        seconds: what each phase took.
        t_end: when the last replica served it, or when it was refused (perf_counter_ns); verification comes after.
        ok: whether every replica serves it, with the trainer's log-probs as far as they were checked.
    """

    refused: str
    seconds: dict[str, float]
    t_end: int = 0
    acknowledged: int = 0
    gap: float | None = None
    ok: bool = False

    @property
    def detail(self) -> str:
        """The publication's `detail` in the ledger, JSON."""
        found: dict[str, Any] = {name: round(value, 6) for name, value in self.seconds.items()}
        found |= {} if self.gap is None else {"control_logprob_gap": float(f"{self.gap:.3g}")}
        return json.dumps(found | ({"refused": self.refused} if self.refused else {}))


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
        self._serves = False
        self.published = self.policy_version = -1

    def state(self) -> dict[str, int]:
        """What a checkpoint keeps: the newest publication."""
        return {"published": self.published, "policy_version": self.policy_version}

    def load_state(self, state: Mapping[str, int]) -> None:
        """Take over what `state` gave: numbers go on from there. Nothing is served before the next publication."""
        self.published, self.policy_version = state["published"], state["policy_version"]

    def publish(self) -> Outcome:
        """Prepare and commit at once; see both."""
        return self.commit(self.prepare())

    def prepare(self) -> Prepared:
        """Ship the trainer's current weights and have every replica take them in beside what it serves. Replicas may
        answer requests meanwhile, and the trainer may go on once this returns."""
        number, start, version = self.published + 1, time.perf_counter_ns(), self._sender.version
        seconds: dict[str, float] = {}
        shipment = None
        try:
            with _timed(seconds, "ship_s"):
                shipment = self._sender.ship(number)
            with _timed(seconds, "stage_s"):
                refusal = _refusal(self._receivers.stage(shipment))
        except ActorLost:
            raise
        except (OSError, SystemFailure) as error:
            refusal = str(error)
        return Prepared(number, shipment, version, start, seconds, refusal)

    def commit(self, prepared: Prepared) -> Outcome:
        """Have every replica serve what was prepared, each from its next request on; where control log-probs are
        checked the trainer must still be at the published version. One that is refused leaves the old one served by
        all, and its number to the next one.

        Raises:
            SystemFailure: replicas may be serving different versions, or not the weights that they were given; or no
                old version is served, to go on with.
        """
        outcome = Outcome(prepared.refusal, dict(prepared.seconds), time.perf_counter_ns())
        shipment = None if prepared.refusal else prepared.shipment
        try:
            if shipment is not None:
                self._activate(shipment, outcome)
            if shipment is not None and not outcome.refused and self.verifies(prepared):
                self._verify(shipment, outcome)
            outcome.ok = not outcome.refused
        finally:
            self._write(prepared, outcome)
        if outcome.refused:
            self._probe.fault("publication_refused", "system", f"publication {prepared.number}", outcome.refused)
            if not self._serves:
                raise SystemFailure(f"publication {prepared.number}: {outcome.refused}; no older one is served")
            return outcome
        self._serves = True
        self.published, self.policy_version = prepared.number, prepared.policy_version
        return outcome

    def verifies(self, prepared: Prepared) -> bool:
        """Whether `commit` will compare control log-probs."""
        return not self._serves or prepared.number % self._settings.verify_every == 0

    def control_gap(self, shipment: Shipment) -> float:
        """The largest |difference| between any replica's and the trainer's log-probs on freshly sampled control tokens,
        with the weights of `shipment` on both sides.

        Both are of the distribution really sampled, so that truncation is no mismatch. Not a number, if either is.

        Raises:
            SystemFailure: a replica says that it answered with another version.
        """
        tokens = min(CONTROL_TOKENS, self._settings.decoding.max_tokens)
        gaps = [0.0]
        for replica, answer in enumerate(self._receivers.control(self._control, tokens)):
            said = (answer.published_version, answer.policy_version)
            if said != (shipment.number, shipment.policy_version):
                raise SystemFailure(
                    f"replica {replica} says that it serves publication {said[0]} of version {said[1]}, "
                    f"not {shipment.number} of version {shipment.policy_version}"
                )
            gaps += self._differences(replica, answer)
        return max(gaps, key=lambda gap: (gap != gap, gap))

    def _differences(self, replica: int, answer: Answer) -> list[float]:
        theirs = [[value for value in group[0].logprobs if value is not None] for group in answer.groups]
        pairs = [(prompt, group[0].tokens) for prompt, group in zip(self._control, answer.groups, strict=True)]
        ours = self._sender.sampled_logprobs(pairs)
        rows = [
            {
                "published_version": answer.published_version,
                "policy_version": answer.policy_version,
                "replica": replica,
                "tokens": len(tokens),
                "engine_logprobs": engine,
                "trainer_logprobs": trainer,
                "t": time.perf_counter_ns(),
            }
            for (_, tokens), engine, trainer in zip(pairs, theirs, ours, strict=True)
        ]
        self._probe.controls(rows)
        both = [zip(engine, trainer, strict=True) for engine, trainer in zip(theirs, ours, strict=True)]
        return [abs(one - other) for row in both for one, other in row]

    def _activate(self, shipment: Shipment, outcome: Outcome) -> None:
        with _timed(outcome.seconds, "activate_s"):
            receipts = self._receivers.activate(shipment)
        outcome.t_end = time.perf_counter_ns()
        outcome.acknowledged = sum(receipt.ok for receipt in receipts)
        outcome.refused = _refusal(receipts)
        if outcome.refused:
            self._take_back(shipment, receipts, outcome.refused)

    def _take_back(self, shipment: Shipment, receipts: Sequence[Receipt], why: str) -> None:
        old = self.published if self._serves else -1
        if any(receipt.serves != old for receipt in receipts) and all(
            receipt.serves is not None for receipt in receipts
        ):
            receipts = self._receivers.revert(shipment)
        if any(receipt.serves != old for receipt in receipts):
            served = ", ".join(f"{receipt.replica}: {receipt.serves}" for receipt in receipts)
            raise SystemFailure(f"publication {shipment.number}: {why}; replicas may serve different ones ({served})")

    def _verify(self, shipment: Shipment, outcome: Outcome) -> None:
        with _timed(outcome.seconds, "verify_s"):
            outcome.gap = self.control_gap(shipment)
        if not outcome.gap <= TOLERANCE:
            detail = f"control log-probs differ by {outcome.gap:.3g}, more than {TOLERANCE:g}"
            raise SystemFailure(f"publication {shipment.number}: {detail}")

    def _write(self, prepared: Prepared, outcome: Outcome) -> None:
        shipment = prepared.shipment
        self._probe.publication(
            published_version=prepared.number,
            policy_version=prepared.policy_version,
            t_start=prepared.t_start,
            t_end=outcome.t_end,
            kind=shipment.kind if shipment else self._settings.publication,
            bytes=shipment.bytes if shipment else 0,
            replicas=self._receivers.replicas,
            acknowledged=outcome.acknowledged,
            tensor_hash=shipment.digest if shipment else None,
            verified=None if outcome.gap is None else outcome.gap <= TOLERANCE,
            ok=outcome.ok,
            detail=outcome.detail,
        )


def _refusal(receipts: Sequence[Receipt]) -> str:
    refused = [receipt for receipt in receipts if not receipt.ok]
    return f"replica {refused[0].replica}: {refused[0].detail}" if refused else ""


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = time.perf_counter() - start
