"""Each guarantee broken on purpose, and who names it: a law of `rlaxes check`, or the loop itself.

Those of the engines (prefix cache, shared blocks, a tied head, a reused adapter) are in `check_vllm_traps` and
`check_publication`; a cold optimizer and a spoilt checkpoint in `check_recovery`; counts, fates and chains in
`tests/audit`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference import disaggregated, keeper
from adapters.reference.buffer import RolloutBuffer
from adapters.reference.messages import Answer, Receipt, Request, Shipment
from adapters.reference.queue import RolloutQueue
from adapters.reference.receiver import Receiver
from adapters.reference.remote import RemotePool
from adapters.reference.rollout import RolloutWorker
from adapters.reference.samples import Sample
from harness.errors import SystemFailure
from tests.adapters.reference.in_env.cells import attempt, bundle, cell, run, varied_rewards
from tests.adapters.reference.in_env.threads import ThreadCluster

__all__ = ["bundle", "varied_rewards"]
Mutate = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disaggregated, "Cluster", ThreadCluster)


def skip_the_barrier(patch: pytest.MonkeyPatch) -> None:
    """Only the first replica is told to serve the new weights, and the publisher is told that all do."""

    def activate(self: RemotePool, shipment: Shipment) -> list[Receipt]:
        first: Receipt = self._pool.cluster.result(self._pool.actors[0].call("activate", shipment))
        return [replace(first, replica=number) for number in range(self.replicas)]

    whole = RemotePool.activate
    patch.setattr(
        RemotePool, "activate", lambda self, sent: whole(self, sent) if sent.number == 0 else activate(self, sent)
    )


def mislabel_a_version(patch: pytest.MonkeyPatch) -> None:
    generate = RolloutWorker.generate

    def newer(self: RolloutWorker, request: Request, *rest: Any) -> Answer:
        answer = generate(self, request, *rest)
        return replace(answer, policy_version=max(answer.policy_version - 1, 0))

    patch.setattr(RolloutWorker, "generate", newer)


def admit_without_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RolloutQueue, "admits", lambda *_: None)


def train_twice(patch: pytest.MonkeyPatch) -> None:
    """A batch that was trained on comes back as part of the next one."""
    hold, before = RolloutBuffer.hold, list[Sample]()

    def again(self: RolloutBuffer, samples: Sequence[Sample]) -> None:
        hold(self, [*samples, *before[:4]])
        before[:] = samples

    patch.setattr(RolloutBuffer, "hold", again)


def lose_silently(patch: pytest.MonkeyPatch) -> None:
    accept = RolloutBuffer.accept
    patch.setattr(RolloutBuffer, "accept", lambda self, samples: accept(self, samples)[1:])


LAWS = [
    (mislabel_a_version, "version_served", {"layout": "colocated_sync"}),
    (admit_without_bound, "lag_bound", {"layout": "disaggregated_async", "lag_bound": 1}),
    (train_twice, "trained_in_one_batch", {"layout": "colocated_sync"}),
    (lose_silently, "fate_of_each_sample", {"layout": "colocated_sync"}),
]


@pytest.mark.parametrize(("mutate", "law", "where"), LAWS, ids=[mutate.__name__ for mutate, _, _ in LAWS])
def test_a_law_names_it(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, law: str, where: dict[str, Any]
) -> None:
    mutate(monkeypatch)
    run(cell(bundle, tmp_path, options={"verify_every": 100}, steps=8, **where), breaks=law)


def test_a_replica_that_a_publication_left_out_says_so(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_the_barrier(monkeypatch)
    options = {"pools": {"replicas": 2}, "verify_every": 100}
    with pytest.raises(SystemFailure, match="replica 1: publication 0 was written to while it was served"):
        attempt(cell(bundle, tmp_path, "disaggregated_sync", options=options, steps=8))


def test_bytes_that_no_replica_checked_are_named_by_what_they_answer(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = Receiver.receive

    def unchecked(self: Receiver, shipment: Shipment) -> list[tuple[str, Any]]:
        return [(name, tensor * 0.5) for name, tensor in receive(self, shipment)]

    monkeypatch.setattr(Receiver, "receive", unchecked)
    content = cell(bundle, tmp_path, "disaggregated_sync", options={"verify_every": 1})
    with pytest.raises(SystemFailure, match="control log-probs differ"):
        attempt(content)


def test_a_mask_that_a_reload_loses_is_named(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue's records come back with every token marked as the policy's own."""
    read = keeper.from_lines

    def unmasked(*arguments: Any) -> list[list[Sample]]:
        groups = [list(group) for group in read(*arguments)]
        for sample in (sample for group in groups for sample in group):
            sample.completion = replace(sample.completion, mask=[1] * len(sample.completion.tokens))
        return groups

    dies = [{"point": "trainer.after_checkpoint", "role": "trainer", "at": 2, "action": "raise"}]
    options = {"checkpoint": {"every": 1}}
    content = cell(bundle, tmp_path, "disaggregated_async", 2, options=options, steps=8)
    content["fault"] = {"name": "check", "restarts": 1, "faults": dies}
    with pytest.raises(SystemFailure, match=r"trainer\.after_checkpoint"):
        attempt(content)
    monkeypatch.setattr(keeper, "from_lines", unmasked)
    with pytest.raises(SystemFailure, match="what was restored is not what was saved: queue"):
        attempt(content | {"attempt": 1})
