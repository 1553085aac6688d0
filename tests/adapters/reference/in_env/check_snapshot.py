"""The copy that a checkpoint is written from: taken at its moment, out of the way of training, in memory used again."""

import random
from pathlib import Path
from typing import Any, cast

from safetensors.torch import load_file

from adapters.reference.trainer import Trainer
from adapters.reference.trainer_state import TENSORS, TrainerState
from harness.probe.faults import Faults
from tests.adapters.reference.in_env import tiny


class Unbroken:
    """No fault is due."""

    def room(self, point: str) -> None:
        """No limit."""

    def at(self, point: str, place: int | None = None, *, passings: int = 1) -> bool:
        """Nothing happens."""
        return False


def step(trainer: Trainer, number: int) -> None:
    draw = random.Random(number)
    samples = [tiny.sample(place, 24, draw) for place in range(4)]
    tiny.score(trainer, samples)
    trainer.update(samples, "gen-0", number)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def test_each_checkpoint_holds_the_state_of_its_moment_in_memory_used_again(tmp_path: Path) -> None:
    trainer = tiny.trainer(tiny.model())
    state = TrainerState(trainer, cast(Faults, Unbroken()))
    wanted, places = [], []
    for number in range(3):
        step(trainer, number)
        wanted.append(trainer.full_state())
        (tmp_path / str(number)).mkdir()
        state.save(str(tmp_path / str(number)), background=True)
        places.append({name: tensor.data_ptr() for name, tensor in state._copied.items() if tensor.dim()})
    while state.saved() is None:
        pass
    assert all(same(load_file(tmp_path / str(number) / TENSORS), wanted[number]) for number in range(3))
    assert places[0] == places[1] == places[2]


def test_moments_that_come_later_have_room(tmp_path: Path) -> None:
    trainer = tiny.trainer(tiny.model())
    before = trainer.full_state()
    step(trainer, 0)
    assert same(trainer.full_state(before), trainer.full_state())
