"""Two trainer ranks in two real processes against one: loss, gradient norm, log-probs, weights and state."""

import json
import os
import random
import signal
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import multiprocessing
from torch.distributed.tensor import DTensor

from adapters.reference.messages import Update
from adapters.reference.ranks import Alone, RankGroup, Ranks, whole
from adapters.reference.samples import Sample
from adapters.reference.settings import Lora, Settings
from adapters.reference.trainer import Trainer
from tests.adapters.reference.in_env import tiny

VOCAB, RANKS = 25, 2
MINIBATCHES = (7, 1, 4)
"""With one sample, the second rank has none."""
# An epsilon above the gradient's rounding: Adam's first steps would else magnify it to whole steps.
OPTIMIZER = replace(tiny.OPTIMIZER, adam_eps=1e-3, max_grad_norm=0.5)
PLAIN = replace(tiny.SETTINGS, optimizer=OPTIMIZER, minibatches=2, micro_batches=2)
CASES = {
    "plain": PLAIN,
    "several passes, against a reference": replace(PLAIN, objective=replace(tiny.OBJECTIVE, kl_beta=0.2)),
    "checkpointed": replace(PLAIN, optimizer=replace(OPTIMIZER, gradient_checkpointing=True), micro_batches=1),
    "corrected": replace(PLAIN, staleness=replace(tiny.SETTINGS.staleness, correction="clip", level="sequence")),
    "adapters, against a reference": replace(
        PLAIN, lora=Lora(rank=4, alpha=8.0), objective=replace(tiny.OBJECTIVE, kl_beta=0.2, loss="sequence_mean")
    ),
}


def samples_of(count: int, seed: int) -> list[Sample]:
    draw = random.Random(seed)
    return [tiny.sample(number, VOCAB, draw, observed=0.3) for number in range(count)]


def train(trainer: Trainer, seeds: range) -> list[Update]:
    updates = []
    for seed in seeds:
        minibatch = samples_of(MINIBATCHES[seed % len(MINIBATCHES)], seed)
        if trainer.needs_scoring:
            tiny.score(trainer, minibatch)
        updates.append(trainer.update(minibatch, "gen-0", seed, lr_scale=0.5))
    return updates


def trainer_of(settings: Settings, ranks: Ranks) -> Trainer:
    return Trainer(tiny.model(VOCAB, tied=True, scale=0.08), settings, pad=0, probe=tiny.UNSEEN, ranks=ranks)


def rank_main(rank: int, folder: Path) -> None:
    """Every case on one of the ranks; the first writes what came out."""
    torch.set_num_threads(1)
    group = RankGroup(rank, RANKS, folder / "meeting", "cpu")
    for number, settings in enumerate(CASES.values()):
        trainer = trainer_of(settings, group)
        sharded = all(isinstance(parameter, DTensor) for parameter in trainer.model.parameters())
        updates = train(trainer, range(3))
        state, digest = trainer.full_state(), trainer.digest()
        weights = {name: whole(tensor).clone() for name, tensor in trainer.weights()}
        again = trainer_of(settings, group)
        again.load_full_state(state)
        resumed = [train(one, range(3, 5)) for one in (trainer, again)]
        exact = [[one.loss, one.grad_norm] for one in resumed[0]] == [[one.loss, one.grad_norm] for one in resumed[1]]
        facts = {
            "sharded": sharded,
            "digest": digest,
            "resumed_exactly": exact and trainer.digest() == again.digest(),
            "updates": [asdict(update) for update in updates],
        }
        if rank == 0:
            save_file(state, folder / f"state-{number}.safetensors")
            save_file(weights, folder / f"weights-{number}.safetensors")
        (folder / f"facts-{number}-{rank}.json").write_text(json.dumps(facts), encoding="utf-8")
    group.close()


def dying_main(rank: int, folder: Path) -> None:
    """The second rank dies between two updates; the first says what became of its own."""
    torch.set_num_threads(1)
    group = RankGroup(rank, RANKS, folder / "meeting", "cpu")
    trainer = trainer_of(PLAIN, group)
    train(trainer, range(1))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        train(trainer, range(1, 2))
    except RuntimeError:
        (folder / "raised").touch()
    group.close()


def test_a_rank_whose_peer_died_raises(tmp_path: Path) -> None:
    started = multiprocessing.spawn(dying_main, (tmp_path,), nprocs=RANKS, join=False)
    for process in started.processes:
        process.join()
    assert [process.exitcode for process in started.processes] == [0, -signal.SIGKILL]
    assert (tmp_path / "raised").exists()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    multiprocessing.spawn(rank_main, (folder,), nprocs=RANKS)
    return folder


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
class TestTwoRanks:
    """One test a promise; the processes run once."""

    def _facts(self, outcomes: Path, number: int) -> list[dict[str, Any]]:
        return [json.loads((outcomes / f"facts-{number}-{rank}.json").read_text()) for rank in range(RANKS)]

    @pytest.fixture
    def alone(self, number: int) -> tuple[Trainer, list[Update]]:
        trainer = trainer_of(list(CASES.values())[number], Alone())
        return trainer, train(trainer, range(3))

    def test_loss_norm_and_log_probs_are_those_of_one(
        self, outcomes: Path, number: int, alone: tuple[Trainer, list[Update]]
    ) -> None:
        for facts in self._facts(outcomes, number):
            assert facts["sharded"]
            for one, other in zip(alone[1], facts["updates"], strict=True):
                assert other["applied"]
                assert (one.version_after, one.learning_rate) == (other["version_after"], other["learning_rate"])
                assert other["loss"] == pytest.approx(one.loss, rel=1e-5, abs=1e-6)
                assert other["grad_norm"] == pytest.approx(one.grad_norm, rel=1e-5)
                for ours, theirs in zip(one.logprobs, other["logprobs"], strict=True):
                    assert [value is None for value in ours] == [value is None for value in theirs]
                    assert [v for v in theirs if v is not None] == pytest.approx(
                        [v for v in ours if v is not None], abs=1e-5
                    )

    def test_weights_and_moments_are_those_of_one(
        self, outcomes: Path, number: int, alone: tuple[Trainer, list[Update]]
    ) -> None:
        theirs, ours = load_file(outcomes / f"state-{number}.safetensors"), alone[0].full_state()
        weights = load_file(outcomes / f"weights-{number}.safetensors")
        assert theirs.keys() == ours.keys()
        for name, tensor in {**ours, **dict(alone[0].weights())}.items():
            assert torch.allclose((theirs | weights)[name], tensor, rtol=1e-4, atol=2e-6), name

    def test_all_ranks_say_the_same_and_a_restored_group_goes_on_bit_for_bit(self, outcomes: Path, number: int) -> None:
        first, second = self._facts(outcomes, number)
        assert first["digest"] == second["digest"]
        assert first["resumed_exactly"]
        assert second["resumed_exactly"]

    def test_one_rank_goes_on_from_the_state_of_two(
        self, outcomes: Path, number: int, alone: tuple[Trainer, list[Update]]
    ) -> None:
        trainer = trainer_of(list(CASES.values())[number], Alone())
        trainer.load_full_state(load_file(outcomes / f"state-{number}.safetensors"))
        assert trainer.digest() == self._facts(outcomes, number)[0]["digest"]
        for ours, theirs in zip(train(trainer, range(3, 5)), train(alone[0], range(3, 5)), strict=True):
            assert ours.loss == pytest.approx(theirs.loss, rel=1e-4, abs=1e-5)
            assert ours.version_after == theirs.version_after
