"""The rollout worker: one engine, the version it serves, and the requests that it answers. In the loop's process where
colocated, an actor of its own where disaggregated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from adapters.reference.door import Door
from adapters.reference.engine import Engine, Finished, Generation
from adapters.reference.messages import Answer, Receipt, Request, Shipment
from adapters.reference.receiver import Receiver
from adapters.reference.settings import Settings
from adapters.reference.turns import conduct
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.task.bundle import Prompt


@dataclass(frozen=True)
class Held:
    """A publication that has arrived, and its tensors."""

    shipment: Shipment
    tensors: list[tuple[str, Any]] = field(repr=False)


class RolloutWorker:
    """Answers requests with one engine, from any thread. A publication waits for the request that is being answered;
    only with `versions=turn` it comes between two of its turns, with `token` between two of its forward passes, and
    each token then says its version."""

    def __init__(self, engine: Engine, settings: Settings, probe: Probe, faults: Faults, number: int = 0) -> None:
        self.engine, self._number, self._faults = engine, number, faults
        self._settings, self._probe = settings, probe
        self._door, self._receiver = Door(), Receiver()
        self._staged: Held | None = None
        self._served: Held | None = None
        self._before: Held | None = None
        self._broken = False

    @property
    def policy_version(self) -> int:
        """Of the weights served; -1 before the first publication."""
        return self._served.shipment.policy_version if self._served else -1

    @property
    def published_version(self) -> int:
        """Number of the publication served; -1 before the first."""
        return self._served.shipment.number if self._served else -1

    def generate(self, request: Request, finished: Finished | None = None) -> Answer:
        """Answer a request, turn by turn; `finished` is told of each group that is whole with its first turn, at once.

        Raises:
            SystemFailure: the engine lost a part of it, or the weights were written to while they were served.
        """
        with self._door.request():
            self._faults.at("rollout.generate")
            torch.manual_seed(request.seed)
            answer = conduct(request, partial(self._serve, request), finished)
            self._check_served()
        return answer

    def stage(self, shipment: Shipment) -> Receipt:
        """Take a shipment's tensors in and check them; what is served does not change."""
        self._staged = None
        try:
            if shipment.kind != "shared" and self._faults.at("publication.stage"):
                raise ValueError("damaged on purpose")
            self._staged = Held(shipment, self._receiver.receive(shipment))
        except (OSError, ValueError, SystemFailure) as error:
            return self._receipt(str(error))
        return self._receipt()

    def activate(self, shipment: Shipment) -> Receipt:
        """Serve what was staged: later requests are answered and labelled with these versions."""
        return self._door.change(partial(self._activate, shipment))

    def revert(self, shipment: Shipment) -> Receipt:
        """Serve what was served before that shipment, if it is served."""
        return self._door.change(partial(self._revert, shipment))

    def control(self, prompts: Sequence[list[int]], tokens: int) -> Answer:
        """One completion of `tokens` tokens at most for each control prompt, with the weights served now. No stage of
        the loop: it stands in no span."""
        with self._door.request():
            groups = self.engine.generate(prompts, 1, tokens).groups
            return Answer(groups, self.policy_version, self.published_version)

    def warm_up(self, prompts: Sequence[Prompt]) -> None:
        """One discarded generation of a batch's size: an engine's first call compiles and allocates."""
        ids = [prompt.token_ids for prompt in prompts]
        self.engine.generate(ids, self._settings.group_size, self._settings.decoding.max_tokens)

    def close(self) -> None:
        """Free what was received."""
        self._receiver.close()

    def _serve(self, request: Request, prompts: Sequence[Sequence[int]], n: int, finished: Finished | None) -> Answer:
        if self._settings.versions != "one":
            self._door.let_in()
        policy_version, published_version = self.policy_version, self.published_version
        between = self._door.let_in if self._settings.versions == "token" else None
        generation = self.engine.generate(prompts, n, request.max_tokens, between, finished)
        self._write_phases(generation, request, policy_version)
        return Answer(generation.groups, policy_version, published_version)

    def _activate(self, shipment: Shipment) -> Receipt:
        staged = self._staged
        if staged is None or staged.shipment != shipment:
            return self._receipt(f"publication {shipment.number} is not staged")
        try:
            damaged = shipment.kind != "shared" and self._faults.at("publication.activate")
        except (OSError, SystemFailure) as error:
            return self._receipt(str(error))
        if damaged:
            staged = Held(shipment, _damaged(staged.tensors))
        self._staged = None
        # Tensors that were handed over have changed in place: the old ones are gone.
        return self._swap(staged, self._served if shipment.tensors is None else None)

    def _revert(self, shipment: Shipment) -> Receipt:
        if self.published_version != shipment.number:
            return self._receipt()
        if self._before is None:
            return self._receipt("there is nothing older to serve")
        return self._swap(self._before, None)

    def _swap(self, held: Held, before: Held | None) -> Receipt:
        try:
            self.engine.publish(held.tensors, held.shipment.policy_version)
        except Exception as error:  # noqa: BLE001 - whatever it was, some tensors may have been replaced by now
            self._broken = True
            return self._receipt(f"{type(error).__name__}: {error}")
        self._served, self._before, self._broken = held, before, False
        return self._receipt()

    def _receipt(self, refused: str = "") -> Receipt:
        serves = None if self._broken else self.published_version
        return Receipt(self._number, ok=not refused, serves=serves, detail=refused)

    def _check_served(self) -> None:
        if self._broken:
            raise SystemFailure(f"replica {self._number} was left half-way between two publications")
        if self._served is not None and not self._receiver.intact(self._served.shipment):
            raise SystemFailure(
                f"replica {self._number}: publication {self.published_version} was written to while it was served"
            )

    def _write_phases(self, generation: Generation, request: Request, policy_version: int) -> None:
        for phase in generation.phases:
            self._probe.add_span(
                phase.stage,
                phase.t_start,
                phase.t_end,
                trace_id=request.trace_id,
                policy_version=policy_version,
                step=request.step,
                device=self._settings.device,
                records=phase.records,
                input_tokens=phase.input_tokens,
                output_tokens=phase.output_tokens,
                detail=f'{{"forwards": {phase.forwards}}}',
            )


def _damaged(tensors: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    (name, first), *rest = tensors
    return [(name, -first), *rest]


class LocalPool:
    """The one worker of a colocated cell, called as a pool is."""

    replicas = 1

    def __init__(self, worker: RolloutWorker) -> None:
        self._worker = worker

    def generate(self, request: Request, finished: Finished | None = None) -> list[tuple[Request, Answer]]:
        """See `loop.Collectors.generate`: one part."""
        return [(request, self._worker.generate(request, finished))]

    def stage(self, shipment: Shipment) -> list[Receipt]:
        """See `RolloutWorker.stage`."""
        return [self._worker.stage(shipment)]

    def activate(self, shipment: Shipment) -> list[Receipt]:
        """See `RolloutWorker.activate`."""
        return [self._worker.activate(shipment)]

    def revert(self, shipment: Shipment) -> list[Receipt]:
        """See `RolloutWorker.revert`."""
        return [self._worker.revert(shipment)]

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[Answer]:
        """See `RolloutWorker.control`."""
        return [self._worker.control(prompts, tokens)]
