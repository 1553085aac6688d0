"""The records of an asynchronous mode, from what verl's processes hand over."""

from collections import defaultdict
from typing import Any

import pytest

from adapters.verl.asynchronous.controller import AsyncController, HandOver
from adapters.verl.records import Facts
from tests.adapters.verl.cells import cpu_cell

FACTS = {"run_id": "run", "decoding": {}, "verifier_version": "v", "tokenizer_hash": "t", "template_hash": "c"}


class Ledger:
    """Takes what a probe would write."""

    def __init__(self, cell: dict[str, Any]) -> None:
        self.cell, self.enabled = cell, True
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def accept_rollouts(self, rows: list[dict[str, Any]]) -> None:
        self.rows["rollouts"] += rows

    def fates(self, rows: list[dict[str, Any]]) -> None:
        self.rows["fates"] += rows

    def trained(self, rows: list[dict[str, Any]]) -> None:
        self.rows["trained"] += rows

    def publication(self, **row: Any) -> None:
        self.rows["publications"].append(row)

    def update(self, **row: Any) -> None:
        self.rows["updates"].append(row)


def controller_of(monkeypatch: pytest.MonkeyPatch, **task: Any) -> AsyncController:
    monkeypatch.setattr(Facts, "of", lambda _: Facts(FACTS, False))
    cell = cpu_cell(task={"group_size": 2, "minibatches": 1, "inner_epochs": 1} | task)
    cell |= {"layout": {"name": "disaggregated_async", "lag_bound": 4}}
    return AsyncController(Ledger(cell))  # type: ignore[arg-type]


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> AsyncController:
    return controller_of(monkeypatch)


def handed(number: int, version: int) -> dict[str, Any]:
    """What the trainer worker says of a hand-over."""
    return {"published_version": number, "policy_version": version, "t_start": 1, "t_end": 2, "bytes": 10}


def hand_over(controller: AsyncController, stamp: int, number: int, version: int) -> None:
    with controller.published_aside(lambda: {"publications": [handed(number, version)], "busy": []}):
        controller.stamped(stamp)


def columns(stamps: list[list[int]], number: int = 0) -> dict[str, Any]:
    """A group of completions of one prompt, each of as many tokens as it has stamps."""
    count = len(stamps)
    verdict = {"score": 1.0, "rlaxes_components": {}, "rlaxes_text": "", "t_verify_start": 3, "t_verify_end": 4}
    ours = {"policy_version": None, "published_version": None, "finish_reason": "stop", "t_generate_start": 1}
    return {
        "prompts": [[7]] * count,
        "responses": [[1] * len(each) for each in stamps],
        "response_mask": [[1] * len(each) for each in stamps],
        "rollout_log_probs": [[-0.5] * len(each) for each in stamps],
        "advantages": [[0.5] * len(each) for each in stamps],
        "extra_fields": [{"rlaxes": ours | {"stamps": each}, "reward_extra_info": verdict} for each in stamps],
        "extra_info": [{"prompt_id": "p0"}] * count,
        "session_id": list(range(count)),
        "rlaxes_round": [number] * count,
    }


def rows_of(controller: AsyncController, table: str) -> list[dict[str, Any]]:
    ledger: Any = controller.probe
    rows: list[dict[str, Any]] = ledger.rows[table]
    return rows


def test_tokens_get_the_version_that_the_hand_over_of_their_stamp_had(controller: AsyncController) -> None:
    hand_over(controller, 0, 0, 0)
    hand_over(controller, 7, 1, 3)
    controller.sampled(["", ""], [{}, {}], columns([[0, 0], [0, 7]]))
    first, second = rows_of(controller, "rollouts")
    assert (first["policy_version"], first["token_policy_versions"], first["published_version"]) == (0, None, 0)
    assert (second["policy_version"], second["token_policy_versions"]) == (None, [0, 3])
    assert first["group_complete"]


def test_a_hand_over_to_replicas_of_their_own_says_what_all_of_them_hold(controller: AsyncController) -> None:
    controller.handed_over(HandOver(0, 100, 200, 2, 4096, "digest"))
    hand_over(controller, 0, 0, 0)
    hand_over(controller, 1, 1, 1)
    first, second = rows_of(controller, "publications")
    assert (first["t_start"], first["t_end"], first["bytes"]) == (100, 200, 4096)
    assert (first["replicas"], first["acknowledged"], first["tensor_hash"]) == (2, 2, "digest")
    assert first["verified"] is True
    assert (second["t_start"], second["bytes"], second["verified"]) == (1, 10, None)


def test_a_transport_that_says_nothing_is_not_called_verified(controller: AsyncController) -> None:
    controller.handed_over(HandOver(0, 100, 200, 1, None, None))
    hand_over(controller, 0, 0, 0)
    row = rows_of(controller, "publications")[0]
    assert (row["bytes"], row["tensor_hash"], row["verified"]) == (10, None, None)


@pytest.mark.parametrize(
    ("act", "fate", "reason"),
    [
        (lambda controller, rows: controller.dropped("stale", rows), "dropped", "stale"),
        (lambda controller, rows: controller.left(rows), "in_flight", "the run's last optimizer step came first"),
    ],
)
def test_what_nobody_trained_on_is_written_with_its_tokens(
    controller: AsyncController, act: Any, fate: str, reason: str
) -> None:
    hand_over(controller, 0, 0, 0)
    taken = columns([[0, 0, 0], [0]])
    del taken["advantages"]
    act(controller, taken)
    assert [row["advantage"] for row in rows_of(controller, "rollouts")] == [None, None]
    ended = [(row["fate"], row["reason"], row["policy_tokens"]) for row in rows_of(controller, "fates")]
    assert ended == [(fate, reason, 3), (fate, reason, 1)]


def test_batches_are_numbered_as_they_are_trained_on(controller: AsyncController) -> None:
    hand_over(controller, 0, 0, 0)
    for number in range(2):
        controller.sampled(["", ""], [{}, {}], columns([[0], [0]], number))
        update = {"step": number, "policy_version_after": number + 1, "t_end": 9}
        trained = {"sample_id": f"p0.b{number}.g0", "step": number}
        controller._seen["updates"].append(update)
        controller._seen["trained"].append(trained)
        controller.trained_batch()
    assert [row["batch_id"] for row in rows_of(controller, "trained")] == ["batch-0-mb-0", "batch-1-mb-0"]
    assert [row["fate"] for row in rows_of(controller, "fates")] == ["trained", "trained"]


def test_two_epochs_over_what_separate_async_takes_are_not_two_minibatches(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = controller_of(monkeypatch, minibatches=2, inner_epochs=2)
    hand_over(controller, 0, 0, 0)
    controller.sampled(["", ""], [{}, {}], columns([[0], [0]]))
    for step in range(2):
        controller._seen["updates"].append({"step": step, "policy_version_after": step + 1, "t_end": 9})
        controller._seen["trained"].append({"sample_id": "p0.b0.g0", "step": step})
    controller.trained_batch()
    named = [(row["batch_id"], row["epoch"]) for row in rows_of(controller, "trained")]
    assert named == [("batch-0-mb-0", 0), ("batch-0-mb-0-e1", 1)]
