"""Publications of two trainer ranks in two real processes: nothing is gathered, and what arrives is the whole."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import multiprocessing

from adapters.reference.messages import Shipment, merged
from adapters.reference.ranks import RankGroup, whole
from adapters.reference.receiver import Receiver
from adapters.reference.settings import Lora
from adapters.reference.trainer import Trainer
from adapters.reference.weights import FileSender, MemorySender
from harness.probe.faults import Faults
from tests.adapters.reference.in_env import tiny

RANKS = 2
VOCAB = 25
"""Odd, so that the ranks' slices of it differ in length."""
CASES = [
    (sender, kind, Lora(rank, 8.0))
    for sender in (MemorySender, FileSender)
    for kind, rank in (("full", 0), ("sharded", 0), ("sharded", 4), ("adapter", 4))
]


def together(shipment: Shipment) -> Shipment:
    """What the controller makes of all ranks' shares."""
    shares: list[Any] = [None] * RANKS
    dist.all_gather_object(shares, shipment)
    return merged(shares)


def rank_main(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    group = RankGroup(rank, RANKS, folder / "meeting", "cpu")
    for number, (kind_of_sender, kind, lora) in enumerate(CASES):
        settings = replace(tiny.SETTINGS, directory=folder, lora=lora, publication=kind)
        trainer = Trainer(tiny.model(VOCAB, tied=True), settings, pad=0, probe=tiny.UNSEEN, ranks=group)
        sender = kind_of_sender(trainer, settings, kind, Faults(settings, f"trainer-{rank}"), rank, RANKS)
        trainer.version = 5
        own = sender.ship(3)
        shipment = together(own)
        weights = trainer.adapter_weights() if kind == "adapter" else trainer.weights()
        expected = {name: whole(tensor).clone() for name, tensor in weights}
        received = dict(Receiver().receive(shipment))
        facts = {
            "equal": received.keys() == expected.keys()
            and all(torch.equal(received[name], tensor) for name, tensor in expected.items()),
            "own": own.bytes,
            "all": shipment.bytes,
            "whole": sum(tensor.numel() * 4 for tensor in expected.values()),
            "version": shipment.policy_version,
        }
        dist.barrier()
        if kind_of_sender is MemorySender:
            if rank == 1:
                sender._slots.begin(3, rank)
            dist.barrier()
            with pytest.raises(ValueError, match="half-written"):
                Receiver().receive(shipment)
        with pytest.raises(ValueError, match=r"bytes were written|written not once"):
            Receiver().receive(merged([shipment, replace(shipment, parts=shipment.parts[:1])]))
        dist.barrier()
        (folder / f"facts-{number}-{rank}.json").write_text(json.dumps(facts), encoding="utf-8")
    group.close()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    multiprocessing.spawn(rank_main, (folder,), nprocs=RANKS)
    return folder


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{one.__name__}-{k}-{r.rank}" for one, k, r in CASES])
def test_what_arrives_is_the_whole(outcomes: Path, number: int) -> None:
    facts = [json.loads((outcomes / f"facts-{number}-{rank}.json").read_text()) for rank in range(RANKS)]
    assert all(one["equal"] and one["version"] == 5 for one in facts)
    assert {one["all"] for one in facts} == {facts[0]["whole"]} == {sum(one["own"] for one in facts)}
    if CASES[number][1] == "sharded" and not CASES[number][2].rank:
        assert all(0.4 < one["own"] / one["all"] < 0.6 for one in facts)
    else:
        assert facts[0]["own"] == facts[0]["all"]
