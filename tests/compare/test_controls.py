from dataclasses import replace
from typing import Any

from harness.compare.controls import disturbance, foreign_limit
from harness.compare.gates import FOREIGN_LIMIT
from tests.compare.judged_cells import arm


def manifest(**null_test: Any) -> dict[str, Any]:
    return {"configs": {"trl.colocated_sync.free": {"resolved": {"null_test": null_test}}}}


def test_the_limit_is_the_runs_own_and_else_the_stated_one() -> None:
    assert foreign_limit(manifest(max_foreign=1)) == 1.0
    assert foreign_limit(manifest(pairs=5)) == FOREIGN_LIMIT
    assert foreign_limit({"configs": {"trl.colocated_sync.free": {"resolved": {}}}}) == FOREIGN_LIMIT
    assert foreign_limit({}) == FOREIGN_LIMIT


def test_the_worst_cell_is_named_and_the_others_counted() -> None:
    cells = [
        replace(one, foreign_cores=cores) for one, cores in zip(arm("trl", 1, 4), (0.3, 0.8, 0.1, None), strict=True)
    ]
    said = "other processes used 0.8 cores during trl.colocated_sync.free.r1, the worst of 2 cells"
    assert disturbance(cells, 0.25) == f"{said} (limit 0.25)"
    assert disturbance(cells, 0.8) is None
