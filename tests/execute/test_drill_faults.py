"""A fault that an adapter cannot have is refused in one line, before anything is started."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import UserError
from harness.execute.adapter import Adapter, find_adapters
from harness.execute.compose import compose_choices
from harness.execute.drills import DRILLS, check_fault, refusal
from harness.probe.faults import POINTS

KILL: dict[str, Any] = {"point": "rollout.generate", "role": "rollout", "at": 3, "action": "kill"}
FULL: dict[str, Any] = {"checkpoint": {"restore": "full"}}


def _adapter(**drills: Any) -> Adapter:
    spec: dict[str, Any] = {"points": {"rollout.generate": "its one process"}, "restores": ["full"]}
    return Adapter("mine", "mine", Path(), {DRILLS: spec | drills})


@pytest.mark.parametrize("wrong", [{"point": "trainer.updates"}, {"action": "explode"}])
def test_a_drill_that_cannot_be_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong.values()))):
        check_fault({"faults": [KILL | wrong]})


def test_a_point_that_nobody_passes_is_named() -> None:
    fault = {"faults": [KILL], "kills": []}
    assert refusal(_adapter(), fault, FULL) is None
    said = refusal(_adapter(points={"trainer.update": "its one process"}), fault, FULL)
    assert said == "mine passes no point rollout.generate; it passes trainer.update"
    assert "declares no drills" in str(refusal(Adapter("mine", "mine", Path(), {}), fault, FULL))


def test_what_cannot_be_restored_alone_is_named() -> None:
    weights = {"checkpoint": {"restore": "weights"}}
    assert "cannot restore weights alone" in str(refusal(_adapter(), {"faults": [KILL], "kills": []}, weights))


def test_a_cell_that_nothing_is_done_to_is_never_refused() -> None:
    undisturbed = compose_choices(["adapter=fake"])[0].config
    assert refusal(Adapter("mine", "mine", Path(), {}), undisturbed["fault"], undisturbed["adapter"]) is None


@pytest.mark.parametrize("adapter", [a for a in find_adapters().values() if DRILLS in a.spec], ids=lambda a: a.name)
def test_every_point_that_an_adapter_declares_exists(adapter: Adapter) -> None:
    assert set(adapter.spec[DRILLS]["points"]) <= set(POINTS)
    assert "full" in adapter.spec[DRILLS]["restores"]
