from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.verl.controller import FIELDS, Controller
from adapters.verl.records import FIELD, Facts
from tests.adapters.verl.cells import cpu_cell


class Told:
    """A probe that keeps what it is told."""

    enabled = True

    def __init__(self, cell: Mapping[str, Any]) -> None:
        self.cell = cell
        self.rows: dict[str, list[Any]] = {
            name: [] for name in ("rollouts", "fates", "trained", "updates", "pub", "spans")
        }
        self.notes: dict[str, Any] = {}

    def accept_rollouts(self, rows: list[Any]) -> None:
        self.rows["rollouts"] += rows

    def fates(self, rows: list[Any]) -> None:
        self.rows["fates"] += rows

    def trained(self, rows: list[Any]) -> None:
        self.rows["trained"] += rows

    def update(self, **row: Any) -> None:
        self.rows["updates"].append(row)

    def publication(self, **row: Any) -> None:
        self.rows["pub"].append(row)

    def add_span(self, stage: str, start: int, end: int, **fields: Any) -> None:
        self.rows["spans"].append((stage, start, end))

    def note(self, key: str, value: Any) -> None:
        self.notes[key] = value

    def close(self) -> None:
        self.notes["closed"] = True


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(Facts, "of", classmethod(lambda cls, cell: cls({"run_id": "run"}, False)))
    return Told(cpu_cell(Path("/cell"), task={"group_size": 2, "prompts_per_batch": 1, "minibatches": 2}))


def batch(number: int) -> tuple[list[str], list[dict[str, Any]], dict[str, list[Any]]]:
    """Two completions of one prompt, and a row of verl's that only fills the batch."""
    ours = {"finish_reason": "stop", "policy_version": 2 * number, "published_version": number}
    said = {"score": 1.0, "rlaxes_components": {}, "rlaxes_text": "7", "t_verify_start": 1, "t_verify_end": 2}
    columns: dict[str, list[Any]] = {
        "prompts": [[4]] * 3,
        "responses": [[5, 1]] * 3,
        "response_mask": [[1, 1]] * 3,
        "rollout_log_probs": [[-0.5, -0.5]] * 3,
        "advantages": [[0.7, 0.7], [-0.7, -0.7], [0.0, 0.0]],
        "extra_fields": [{FIELD: ours, "reward_extra_info": said}] * 3,
        "extra_info": [{"prompt_id": "p"}] * 3,
        "session_id": [0, 1, 1],
        "rlaxes_round": [number] * 3,
    }
    assert set(columns) == set(FIELDS)
    return ["a_0_0", "a_1_0", "pad"], [{}, {}, {"is_padding": True}], columns


def seen(first: int) -> dict[str, Any]:
    """What a trainer worker says of two minibatches of one completion each."""
    steps = (first, first + 1)
    updates = [{"step": step, "policy_version_after": step + 1, "t_end": 100 + step, "records": 1} for step in steps]
    trained = [{"sample_id": f"p.b{first // 2}.g{place}", "step": step} for place, step in enumerate(steps)]
    return {"busy": [(20, 30)], "updates": updates, "trained": trained, "publications": []}


def test_a_batch_becomes_rollouts_and_its_padding_none(told: Told) -> None:
    Controller(told).sampled(*batch(0))  # type: ignore[arg-type]
    rollouts = told.rows["rollouts"]
    assert [row["sample_id"] for row in rollouts] == ["p.b0.g0", "p.b0.g1"]
    assert [row["group_complete"] for row in rollouts] == [True, True]
    assert [row["advantage"] for row in rollouts] == [0.7, -0.7]


def test_steps_are_of_the_minibatches_of_a_batch_and_samples_end_trained(told: Told) -> None:
    controller = Controller(told)  # type: ignore[arg-type]
    controller.sampled(*batch(1))
    controller._seen = seen(2)
    controller.trained(1)
    assert [row["batch_id"] for row in told.rows["updates"]] == ["batch-1-mb-0", "batch-1-mb-1"]
    assert [(row["fate"], row["policy_tokens"]) for row in told.rows["fates"]] == [("trained", 2), ("trained", 2)]
    assert (controller.steps, controller.version) == (4, 4)


def test_what_was_taken_and_never_trained_on_is_in_flight(told: Told) -> None:
    controller = Controller(told)  # type: ignore[arg-type]
    controller.sampled(*batch(0))
    controller.close()
    assert {row["fate"] for row in told.rows["fates"]} == {"in_flight"}
    assert told.notes["closed"]


def test_publications_count_on_where_a_checkpoint_left_them(told: Told) -> None:
    controller = Controller(told)  # type: ignore[arg-type]
    controller.go_on(4, 4, 3)
    controller.publish([{"published_version": 3, "policy_version": 4, "t_start": 1, "t_end": 2, "bytes": 8}])
    assert (controller.published, controller.version) == (4, 4)
    assert told.rows["pub"][0]["kind"] == "full"


def test_what_is_neither_waiting_nor_the_workers_is_the_controllers(told: Told) -> None:
    controller = Controller(told)  # type: ignore[arg-type]
    controller._quiet = 10
    controller._between([(20, 30), (35, 40)], 50, "gen-0")
    assert told.rows["spans"] == [("batch_assembly", 10, 20), ("batch_assembly", 30, 35), ("batch_assembly", 40, 50)]
