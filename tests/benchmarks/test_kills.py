"""The campaign of random kills: what it plans, and what it says of the verdicts."""

from typing import Any

from benchmarks.kills import KILLS_A_CELL, choices, summary

LAWFUL, SAMPLES = "ledger lawful", "trained samples accounted for"


def _verdict(cell: str, killed: list[str], results: dict[str, str], *, same: bool = True) -> dict[str, Any]:
    said = "; ".join([f"{len(killed)} of 3 acted", *(f"SIGKILL to {name} at 1.00 s, after 2 steps" for name in killed)])
    acted = {"name": "the fault happened", "result": "holds" if len(killed) == 3 else "broken", "said": said}
    checks = [acted, *({"name": name, "result": result, "said": "why"} for name, result in results.items())]
    divergence = {"same_samples": same}
    return {"cell_id": cell, "checks": checks, "attempts": [{}, {}], "divergence": divergence, "continues": True}


def test_kills_are_shared_out_over_cells_with_a_seed_each() -> None:
    planned = choices(2 * KILLS_A_CELL + 1, ["layout=disaggregated_async", "task.steps=9"])
    faults = [choice.config["fault"] for choice in planned]
    assert [fault.get("times") for fault in faults] == [None, KILLS_A_CELL, KILLS_A_CELL, 1]
    assert [fault.get("seed") for fault in faults[1:]] == [0, 1, 2]
    assert {choice.config["task"]["steps"] for choice in planned} == {9}
    assert {choice.config["layout"]["name"] for choice in planned} == {"disaggregated_async"}


def test_victims_are_counted_by_kind_and_checks_by_result() -> None:
    verdicts = [
        _verdict("one", ["main", "rollout-0.1", "trainer-0"], {LAWFUL: "holds", SAMPLES: "holds"}),
        _verdict("two", ["rollout-1"], {LAWFUL: "broken", SAMPLES: "holds"}, same=False),
    ]
    lines = summary(verdicts)
    assert lines[0] == "4 kills in 2 cells, 2 restarts: {'main': 1, 'rollout': 2, 'trainer': 1}"
    assert f"{LAWFUL}: broken 1, holds 1" in lines
    assert f"{SAMPLES}: holds 2" in lines
    assert "same multiset of trained samples as the undisturbed run: 1 of 2 cells" in lines
    # a kill that came too late is no failure of the cell
    assert lines[-1] == f"two: {LAWFUL} broken: why"
