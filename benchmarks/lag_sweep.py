"""What a deeper queue costs, in the order of step 12.4.4: a synchronous baseline, overlap with measured lag, then a
deeper queue. Prints a Markdown table: one row a bound, medians over repeats."""

import statistics
from collections import defaultdict

from benchmarks.pairs import choice, ran_all
from harness.report.build import build_report

BOUNDS = (0, 1, 2, 4, 8)
WORDS = (
    "adapter=reference",
    "repeats=2",
    "task.steps=40",
    "adapter.staleness.max_lag=4",
)
COLUMNS = {
    "lag_p50": "lag, median",
    "lag_max": "lag, largest",
    "period_seconds": "period, s",
    "ess_sequences_share": "ESS / n, sequences",
    "log_ratio_mean": "mean abs log w",
    "clip_fraction": "outside the clip range",
    "stale_rejected_records": "rejected as stale",
    "reward_last_quarter": "reward, last quarter",
}


def main() -> None:
    """Run the barrier and each bound in turn, and print the table."""
    choices = [choice("barrier", [*WORDS, "layout=disaggregated_sync"])]
    asynchronous = [*WORDS, "layout=disaggregated_async"]
    choices += [choice(f"bound-{bound}", [*asynchronous, f"layout.lag_bound={bound}"]) for bound in BOUNDS]
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ran_all(choices) as run:
        for row in build_report(run).rows:
            if row.measure in COLUMNS and not row.variant and row.value is not None:
                found[row.adapter, row.measure].append(row.value)
    print("| | " + " | ".join(COLUMNS.values()) + " |")
    print("|---|" + "---|" * len(COLUMNS))
    for each in choices:
        cells = [_middle(found[each.adapter, tag]) for tag in COLUMNS]
        print(f"| {each.adapter} | " + " | ".join(cells) + " |")


def _middle(values: list[float]) -> str:
    return f"{statistics.median(values):.4g}" if values else "—"
