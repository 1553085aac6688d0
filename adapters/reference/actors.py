"""The roles as actors: each builds its own part from the cell's file and says what it did in a ledger of its own."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from adapters.reference.checkpoint import TrainerPart
from adapters.reference.messages import Answer, Receipt, Request, Scores, Scoring, Shipment, Update
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.task.bundle import Bundle
from harness.task.faulty_verifier import start_verifier
from harness.task.verifier import Verdict

if TYPE_CHECKING:
    from adapters.reference.ranks import RankGroup


class _Role:
    """What all roles share: the cell, the ledger of this process, and an orderly end."""

    def __init__(self, cell: dict[str, Any], name: str) -> None:
        started = time.perf_counter_ns()
        self._stack = ExitStack()
        self._settings = Settings.from_cell(cell)
        self._bundle = Bundle.load(self._settings.bundle)
        self._probe = Probe(cell, name, enabled=bool(cell["observer"]))
        self._build()
        self._probe.add_span("startup", started, time.perf_counter_ns(), trace_id="startup")

    def _build(self) -> None:
        raise NotImplementedError

    def ready(self) -> bool:
        """Answers once the role is built."""
        return True

    def close(self) -> None:
        """Free what the role holds and close its ledger."""
        self._stack.close()
        self._probe.close()


class RolloutReplica(_Role):
    """A rollout worker with an engine and a module of its own; see `rollout.RolloutWorker`."""

    def __init__(self, cell: dict[str, Any], number: int, life: int) -> None:
        self._number = number
        super().__init__(cell, process_of("rollout", number, life))

    def _build(self) -> None:
        import torch
        from transformers import AutoTokenizer

        from adapters.reference.engines import make_engine
        from adapters.reference.lora import add_lora
        from adapters.reference.policy import load_policy
        from adapters.reference.rollout import RolloutWorker
        from adapters.reference.turns import longest_prompt

        torch.set_num_threads(self._settings.pools.rollout_threads)
        prompts = self._bundle.prompts
        tokenizer = AutoTokenizer.from_pretrained(self._bundle.model_dir, local_files_only=True)
        model = load_policy(self._bundle.model_dir, self._settings.device)
        if self._settings.publication == "adapter":
            add_lora(model, self._settings.lora, self._settings.seed)
        longest = longest_prompt(prompts, self._settings.decoding.max_tokens)
        engine = make_engine(self._settings, model, longest, tokenizer.eos_token_id, shared=False)
        self._stack.callback(engine.close)
        faults = Faults(self._settings, f"rollout-{self._number}")
        self._worker = RolloutWorker(engine, self._settings, self._probe, faults, self._number)
        self._stack.callback(self._worker.close)
        self._worker.warm_up(prompts[: self._settings.prompts_per_batch])

    def generate(self, request: Request) -> Answer:
        """See `RolloutWorker.generate`. Its spans are on disk before its rollouts leave: it may be killed after."""
        answer = self._worker.generate(request)
        self._probe.flush()
        return answer

    def stage(self, shipment: Shipment) -> Receipt:
        """See `RolloutWorker.stage`."""
        return self._worker.stage(shipment)

    def activate(self, shipment: Shipment) -> Receipt:
        """See `RolloutWorker.activate`."""
        return self._worker.activate(shipment)

    def revert(self, shipment: Shipment) -> Receipt:
        """See `RolloutWorker.revert`."""
        return self._worker.revert(shipment)

    def control(self, prompts: Sequence[list[int]], tokens: int) -> Answer:
        """See `RolloutWorker.control`."""
        return self._worker.control(prompts, tokens)


class VerifierActor(_Role):
    """A scorer with a verifier process of its own; see `scoring.LocalScorer`."""

    def __init__(self, cell: dict[str, Any], number: int, life: int) -> None:
        self._number = number
        super().__init__(cell, process_of("verifier", number, life))

    def _build(self) -> None:
        from adapters.reference.scoring import LocalScorer
        from adapters.reference.tokens import load_decoder

        role = f"verifier-{self._number}"
        verifier = self._stack.enter_context(start_verifier(self._probe.cell, self._bundle, role))
        self._scorer = LocalScorer(verifier, load_decoder(self._bundle.model_dir), self._probe)

    def score(self, asked: Scoring) -> list[tuple[str, Verdict]]:
        """See `Scorer.score`."""
        return self._scorer.score(asked)


class TrainerRank(_Role):
    """One rank of the trainer; see `trainer.Trainer` and `weights`."""

    def __init__(self, cell: dict[str, Any], rank: int, life: int) -> None:
        self._rank = rank
        self._task = cell["task"]
        super().__init__(cell, process_of("trainer", rank, life))

    def _build(self) -> None:
        import torch

        from adapters.reference.policy import check_output_layer, load_policy
        from adapters.reference.trainer import Trainer
        from adapters.reference.trainer_state import TrainerState
        from adapters.reference.weights import make_sender

        torch.set_flush_denormal(True)
        torch.set_num_threads(self._settings.pools.trainer_threads)
        model = load_policy(self._bundle.model_dir, self._settings.device)
        check_output_layer(model, self._bundle.prompts[0].token_ids, self._settings.device)
        self._trainer = Trainer(model, self._settings, pad=0, probe=self._probe, ranks=self._ranks())
        faults = Faults(self._settings, f"trainer-{self._rank}")
        self._sender = make_sender(self._trainer, self._settings, faults, self._rank)
        self._state = TrainerState(self._trainer, faults, self._rank)

    def score(self, samples: Sequence[Sample], trace_id: str, step: int) -> Scores:
        """See `Trainer.score`."""
        return self._trainer.score(samples, trace_id, step)

    def update(self, minibatch: Sequence[Sample], trace_id: str, step: int, lr_scale: float) -> Update:
        """See `Trainer.update`."""
        return self._trainer.update(minibatch, trace_id, step, lr_scale)

    def ship(self, number: int) -> Shipment:
        """See `publisher.Sender.ship`."""
        return self._sender.ship(number)

    def sampled_logprobs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `publisher.Sender.sampled_logprobs`."""
        return self._sender.sampled_logprobs(pairs)

    def save(self, folder: str, background: bool) -> None:
        """See `TrainerState.save`."""
        self._state.save(folder, background)

    def saved(self) -> TrainerPart | None:
        """See `TrainerState.saved`."""
        return self._state.saved()

    def committed(self) -> None:
        """See `TrainerState.committed`."""
        self._state.committed()

    def load(self, folder: str, which: str) -> TrainerPart:
        """See `TrainerState.load`."""
        return self._state.load(folder, which)

    def facts(self) -> dict[str, Any]:
        """See `facts.trainer_facts`."""
        from adapters.reference.facts import trainer_facts

        return trainer_facts(self._settings, self._trainer, self._task)

    def digest(self) -> str:
        """See `Trainer.digest`."""
        return self._trainer.digest()

    def _ranks(self) -> "RankGroup | None":
        settings = self._settings
        if settings.pools.trainer_ranks == 1:
            return None
        from adapters.reference.ranks import RankGroup

        # A file of its own for each attempt: where a group has met, none can meet again.
        meeting = settings.directory / f"trainer-ranks-{settings.attempt}"
        group = RankGroup(self._rank, settings.pools.trainer_ranks, meeting, settings.device)
        self._stack.callback(group.close)
        return group


def process_of(role: str, number: int, life: int) -> str:
    """The name that a role's ledger bears; a replacement has a ledger of its own."""
    return f"{role}-{number}" + (f".{life}" if life else "")
