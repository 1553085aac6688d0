"""Publications between a trainer and replicas: what arrives, and the four properties, each by trying to break it."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference import engine_transformers
from adapters.reference.messages import Answer, Shipment
from adapters.reference.publisher import TOLERANCE
from adapters.reference.settings import Lora
from adapters.reference.weights import FileSender, MemorySender
from harness.errors import SystemFailure
from tests.adapters.reference.in_env import laws, tiny
from tests.adapters.reference.in_env.replica import PROMPTS, Stand, faulty, stand

SENDERS = [MemorySender, FileSender]
DIFFER = "control log-probs differ"


@pytest.mark.parametrize("sender", SENDERS)
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


def test_an_adapter_is_all_that_is_sent(tmp_path: Path) -> None:
    settings = replace(tiny.SETTINGS, publication="adapter", lora=Lora(4, 8.0))
    with stand(tmp_path, 2, settings) as made:
        for number in range(3):
            assert made.publisher.publish().ok
            check_serves(made, made.module, number, number)
            made.train()
        sent = 4 * sum(tensor.numel() for _, tensor in made.trainer.adapter_weights())
    assert {(row["kind"], row["bytes"]) for row in made.probe.rows} == {("adapter", sent)}


def check_serves(made: Stand, module: Any, policy_version: int, number: int) -> None:
    """Every replica answers with these weights, and says so."""
    for worker in range(made.pool.replicas):
        answer = made.ask(worker)
        assert (answer.policy_version, answer.published_version) == (policy_version, number)
        laws.check_log_probs(answer, PROMPTS, module, 1.0)


def copy_of(module: Any) -> Any:
    """Another module with the same weights."""
    copy = tiny.model(module.config.vocab_size, tied=module.config.tie_word_embeddings)
    copy.load_state_dict(module.state_dict())
    return copy


# Verification: what is damaged or not whole is refused before anything is served from it.


@pytest.mark.parametrize(
    ("point", "action", "role", "why"),
    [
        ("publication.ship", "corrupt", "trainer", "are not those that were sent"),
        ("publication.ship", "raise", "trainer", "on purpose"),
        ("publication.ship", "enospc", "trainer", "No space left"),
        ("publication.stage", "raise", "rollout-1", "on purpose"),
        ("publication.stage", "corrupt", "rollout-0", "damaged"),
        ("publication.activate", "raise", "rollout-0", "on purpose"),
        ("publication.activate", "raise", "rollout-1", "on purpose"),
    ],
)
@pytest.mark.parametrize("sender", SENDERS)
def test_a_publication_that_fails_leaves_all_replicas_with_the_old_one(
    tmp_path: Path, sender: type, point: str, action: str, role: str, why: str
) -> None:
    settings = faulty(tiny.SETTINGS, point, action, role, at=2)
    with stand(tmp_path, 2, settings, sender=sender) as made:
        assert made.publisher.publish().ok
        old = copy_of(made.module)
        made.train()
        outcome = made.publisher.publish()
        assert not outcome.ok
        assert why in outcome.refused
        assert (made.publisher.published, made.publisher.policy_version) == (0, 0)
        check_serves(made, old, 0, 0)
        made.train()
        assert made.publisher.publish().ok
        check_serves(made, made.module, 2, 1)
    assert [(row["published_version"], row["policy_version"], row["ok"]) for row in made.probe.rows] == [
        (0, 0, True),
        (1, 1, False),
        (1, 2, True),
    ]
    assert [kind for kind, _ in made.probe.faults] == ["publication_refused"]


def test_half_a_publication_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stand(tmp_path) as made:
        made.publisher.publish()
        whole = made.sender.ship
        made.train()

        def lost(number: int) -> Shipment:
            return replace(whole(number), parts=whole(number).parts[:-1])

        def twice(number: int) -> Shipment:
            parts = whole(number).parts
            return replace(whole(number), parts=(*parts, parts[3]))

        def unfinished(number: int) -> Shipment:
            shipment = whole(number)
            made.sender._slots.begin(number, 0)
            return shipment

        def mislabelled(number: int) -> Shipment:
            return replace(whole(number), number=number - 1)

        for spoiled, why in ((lost, "only 0 of"), (twice, "not once"), (unfinished, "half-written")):
            monkeypatch.setattr(made.sender, "ship", spoiled)
            assert why in made.publisher.publish().refused
        monkeypatch.setattr(made.sender, "ship", mislabelled)
        assert made.publisher.publish().refused
        assert made.publisher.published == 0


def test_the_first_publication_has_no_older_one_to_go_on_with(tmp_path: Path) -> None:
    settings = faulty(tiny.SETTINGS, "publication.ship", "corrupt", "trainer")
    with stand(tmp_path, settings=settings) as made, pytest.raises(SystemFailure, match="no older one is served"):
        made.publisher.publish()


def test_control_completions_are_kept_and_stand_in_no_span(tmp_path: Path) -> None:
    with stand(tmp_path, 2, replace(tiny.SETTINGS, verify_every=2)) as made:
        for _ in range(3):
            made.publisher.publish()
            made.train()
        answers = made.probe.answers
    asked = [(row["published_version"], row["replica"]) for row in answers]
    assert asked == [(version, replica) for version in (0, 2) for replica in (0, 1) for _ in PROMPTS]
    for row in answers:
        assert row["tokens"] == len(row["engine_logprobs"]) == len(row["trainer_logprobs"])
    assert [row["verified"] for row in made.probe.rows] == [True, None, True]


# Versions: what a replica says that it serves.


def test_a_mislabelled_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stand(tmp_path) as made:
        made.publisher.publish()
        made.train()
        control = made.pool.control

        def old(prompts: Sequence[list[int]], tokens: int) -> list[Answer]:
            return [replace(answer, policy_version=0) for answer in control(prompts, tokens)]

        monkeypatch.setattr(made.pool, "control", old)
        with pytest.raises(SystemFailure, match="says that it serves publication 1 of version 0, not 1 of version 1"):
            made.publisher.publish()
    assert [row["ok"] for row in made.probe.rows] == [True, False]


def test_a_version_that_is_called_new_with_old_weights_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand(tmp_path) as made:
        made.publisher.publish()
        made.train()
        monkeypatch.setattr(made.pool.workers[0].engine, "publish", lambda weights, version: 0)
        with pytest.raises(SystemFailure, match=DIFFER):
            made.publisher.publish()


def test_weights_that_change_after_their_digest_was_checked_are_named(tmp_path: Path) -> None:
    settings = faulty(tiny.SETTINGS, "publication.activate", "corrupt", "rollout-0", at=2)
    with stand(tmp_path, settings=settings) as made:
        made.publisher.publish()
        made.train()
        with pytest.raises(SystemFailure, match=DIFFER):
            made.publisher.publish()


# Barrier: no replica serves a version before all hold it, and none is left alone with it.


def test_no_replica_goes_ahead_of_one_that_has_not_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = faulty(tiny.SETTINGS, "publication.stage", "raise", "rollout-1", at=2)
    with stand(tmp_path, 2, settings) as made:
        made.publisher.publish()
        made.train()
        asked: list[str] = []
        monkeypatch.setattr(made.pool, "activate", lambda shipment: asked.append("activate"))
        assert made.publisher.publish().refused
    assert not asked


def test_replicas_that_may_serve_different_versions_end_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand(tmp_path, 2) as made:
        made.publisher.publish()
        made.train()

        def breaks(weights: Any, version: int) -> int:
            raise RuntimeError("half of it is loaded")

        monkeypatch.setattr(made.pool.workers[1].engine, "publish", breaks)
        with pytest.raises(SystemFailure, match="half of it is loaded; replicas may serve different ones"):
            made.publisher.publish()
    assert [row["ok"] for row in made.probe.rows] == [True, False]


# Atomicity: no request sees a mixture.


def test_a_publication_waits_for_the_request_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stand(tmp_path) as made:
        made.publisher.publish()
        old = copy_of(made.module)
        worker = made.pool.workers[0]
        generate, inside, go_on = worker.engine.generate, threading.Event(), threading.Event()

        def slow(*asked: Any) -> Any:
            inside.set()
            assert go_on.wait(60)
            return generate(*asked)

        made.train()
        monkeypatch.setattr(worker.engine, "generate", slow)
        answers: list[Answer] = []
        asking = threading.Thread(target=lambda: answers.append(made.ask()))
        asking.start()
        assert inside.wait(60)
        publishing = threading.Thread(target=made.publisher.publish)
        publishing.start()
        publishing.join(1.0)
        assert publishing.is_alive()
        assert made.publisher.published == 0
        go_on.set()
        asking.join(60)
        publishing.join(60)
        monkeypatch.undo()
        assert (answers[0].policy_version, made.publisher.published) == (0, 1)
        laws.check_log_probs(answers[0], PROMPTS, old, 1.0)
        check_serves(made, made.module, 1, 1)


def test_weights_that_are_written_to_while_they_are_served_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand(tmp_path) as made:
        made.publisher.publish()
        engine = made.pool.workers[0].engine
        generate = engine.generate

        def overwritten(*asked: Any) -> Any:
            made.sender.ship(2)
            return generate(*asked)

        monkeypatch.setattr(engine, "generate", overwritten)
        with pytest.raises(SystemFailure, match="publication 0 was written to while it was served"):
            made.ask()


def test_blocks_that_requests_share_outlive_a_change_of_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trap of transformers' continuous batching: its cure is `allow_block_sharing=False`."""
    made_config = engine_transformers.ContinuousBatchingConfig
    monkeypatch.setattr(
        engine_transformers,
        "ContinuousBatchingConfig",
        lambda **options: made_config(**(options | {"allow_block_sharing": True})),
    )
    with stand(tmp_path) as made:
        made.publisher._control = [list(range(2, 22)) * 3]
        assert made.publisher.publish().ok
        made.train(by=0.3)
        with pytest.raises(SystemFailure, match=DIFFER):
            made.publisher.publish()
