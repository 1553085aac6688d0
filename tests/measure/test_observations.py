"""A token that the environment inserted counts in nothing that counts the policy's tokens: the same loop with and
without observations has the same figures and the same plots, but for what it takes to retain them."""

from pathlib import Path
from typing import Any

from harness.contract import CellLedger
from harness.measure.api import MeasureContext
from harness.measure.series import cell_series
from harness.measure.view import CellView, Tables
from tests.measure.loops import LENGTHS, MODEL, TASK, WARMUP, figures, loop_cell

OBSERVED = 40
SIZES = {"model": MODEL | {"layers": 2, "kv_heads": 1, "head_dim": 8}}
RETAINED = "memory_predicted_bytes[kv_cache]"
"""Keys and values of observations are kept as others are."""


def observing() -> dict[str, list[Any]]:
    """Columns of completions whose first token is followed by an observation far longer than they are."""
    return {
        "response_tokens": [[7] + [3] * OBSERVED + [7] * (length - 1) for length in LENGTHS],
        "policy_mask": [[0, 0, 0, 1] + [0] * OBSERVED + [1] * (length - 1) for length in LENGTHS],
        "behavior_logprobs": [[-0.5, *[None] * OBSERVED, *[-0.5] * (length - 1)] for length in LENGTHS],
    }


def series(ledger: CellLedger) -> Any:
    return cell_series(CellView(Tables(ledger), MeasureContext(task=TASK, warmup_steps=WARMUP)))


def test_observations_change_no_figure_and_no_plot_of_the_policys_tokens(tmp_path: Path) -> None:
    plain = loop_cell(tmp_path / "plain", notes=SIZES)
    observed = loop_cell(tmp_path / "observed", observing(), notes=SIZES)
    one, other = figures(plain), figures(observed)
    assert one.keys() == other.keys()
    differing = {name for name in one if (one[name].value, one[name].n) != (other[name].value, other[name].n)}
    assert differing == {RETAINED}
    assert sum(value.value is not None for value in one.values()) > 100
    assert series(plain) == series(observed)
