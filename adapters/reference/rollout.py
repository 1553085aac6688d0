"""The rollout worker: one engine, the version it serves, and the requests that it answers. In the loop's process where
colocated, an actor of its own where disaggregated."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from adapters.reference.engine import Completion, Engine, Generation
from adapters.reference.messages import Answer, Receipt, Request, Shipment
from adapters.reference.settings import Settings
from adapters.reference.turns import conduct
from adapters.reference.weights import received
from harness.probe import Probe
from harness.task.bundle import Prompt


class RolloutWorker:
    """Answers requests with one engine. A publication never reaches a request that it is answering."""

    def __init__(self, engine: Engine, settings: Settings, probe: Probe, number: int = 0) -> None:
        self.engine, self._number = engine, number
        self._staged: list[tuple[str, Any]] = []
        self._settings, self._probe = settings, probe
        self.policy_version = self.published_version = -1

    def generate(self, request: Request) -> Answer:
        """Answer a request, turn by turn. Raises SystemFailure if the engine lost a part of it."""
        torch.manual_seed(request.seed)
        return conduct(request, partial(self._serve, request))

    def stage(self, shipment: Shipment) -> Receipt:
        """Take a shipment's tensors in and check them; what is served does not change."""
        try:
            self._staged = received(shipment)
        except (OSError, ValueError) as error:
            return Receipt(self._number, ok=False, detail=str(error))
        return Receipt(self._number, ok=True)

    def activate(self, shipment: Shipment) -> Receipt:
        """Serve what was staged: later requests are answered and labelled with these versions."""
        tensors, self._staged = self._staged, []
        self.engine.publish(tensors)
        self.policy_version, self.published_version = shipment.policy_version, shipment.number
        return Receipt(self._number, ok=True)

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[Completion]:
        """One completion of `tokens` tokens for each control prompt, with the weights served now."""
        return [group[0] for group in self.engine.generate(prompts, 1, tokens).groups]

    def warm_up(self, prompts: Sequence[Prompt]) -> None:
        """One discarded generation of a batch's size: an engine's first call compiles and allocates."""
        ids = [prompt.token_ids for prompt in prompts]
        self.engine.generate(ids, self._settings.group_size, self._settings.decoding.max_tokens)

    def _serve(self, request: Request, prompts: Sequence[Sequence[int]], n: int) -> Answer:
        generation = self.engine.generate(prompts, n, request.max_tokens)
        self._write_phases(generation, request)
        return Answer(generation.groups, self.policy_version, self.published_version)

    def _write_phases(self, generation: Generation, request: Request) -> None:
        for phase in generation.phases:
            self._probe.add_span(
                phase.stage,
                phase.t_start,
                phase.t_end,
                trace_id=request.trace_id,
                policy_version=self.policy_version,
                step=request.step,
                device=self._settings.device,
                records=phase.records,
                input_tokens=phase.input_tokens,
                output_tokens=phase.output_tokens,
                detail=f'{{"forwards": {phase.forwards}}}',
            )


class LocalPool:
    """The one worker of a colocated cell, called as a pool is."""

    replicas = 1

    def __init__(self, worker: RolloutWorker) -> None:
        self._worker = worker

    def generate(self, request: Request) -> list[tuple[Request, Answer]]:
        """See `loop.Collectors.generate`: one part."""
        return [(request, self._worker.generate(request))]

    def stage(self, shipment: Shipment) -> list[Receipt]:
        """See `RolloutWorker.stage`."""
        return [self._worker.stage(shipment)]

    def activate(self, shipment: Shipment) -> list[Receipt]:
        """See `RolloutWorker.activate`."""
        return [self._worker.activate(shipment)]

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[list[Completion]]:
        """See `RolloutWorker.control`."""
        return [self._worker.control(prompts, tokens)]
