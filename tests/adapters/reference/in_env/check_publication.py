"""Publications between a trainer and replicas: what arrives, and the four properties, each by trying to break it."""

from pathlib import Path

import pytest
import torch

from adapters.reference.publisher import TOLERANCE
from adapters.reference.weights import FileSender, MemorySender
from tests.adapters.reference.in_env import laws, tiny
from tests.adapters.reference.in_env.replica import PROMPTS, stand


@pytest.mark.parametrize("sender", [MemorySender, FileSender])
@pytest.mark.parametrize("tied", [False, True])
def test_every_replica_serves_what_the_trainer_holds(tmp_path: Path, sender: type, tied: bool) -> None:
    with stand(tmp_path, 2, module=tiny.model(tied=tied), sender=sender) as made:
        for number in range(4):
            outcome = made.publisher.publish()
            assert outcome.ok
            assert outcome.gap is not None
            assert outcome.gap <= TOLERANCE
            for worker in range(2):
                answer = made.ask(worker)
                assert (answer.policy_version, answer.published_version) == (made.trainer.version, number)
                laws.check_log_probs(answer, PROMPTS, made.module, 1.0)
            made.train()
    assert [row["bytes"] for row in made.probe.rows] == [4 * sum(p.numel() for p in made.module.parameters())] * 4
