"""What overlap is worth where generation and training take about as long: the synchronous loop over the asynchronous
one, beside `C_seq / C_pipe` [12.3.1] of the stages that the synchronous one measured."""

from benchmarks.pairs import choice, ran_all, ratios_of, show
from harness.report.build import build_report

WORDS = (
    "adapter=reference",
    "repeats=4",
    "task.steps=24",
    "task.kl_beta=0.01",
    "task.prompts_per_batch=64",
    "task.max_tokens=8",
    "track=fixed_length",
)
"""Batches of 512: with 128 a period is so short that messages between processes are a tenth of it."""


def main() -> None:
    """Print G, T, the ratio that they allow, and the ratio that was measured."""
    barrier = choice("barrier", [*WORDS, "layout=disaggregated_sync"])
    ahead = choice("ahead", [*WORDS, "layout=disaggregated_async", "layout.lag_bound=1"])
    with ran_all([barrier, ahead]) as run:
        figures = {(row.adapter, row.measure): row.value for row in build_report(run).rows}
        whole = figures["barrier", "period_sequential_seconds"]
        longer = figures["barrier", "period_overlapped_seconds"]
        values = ratios_of(run, barrier, ahead)
    assert whole is not None
    assert longer is not None
    print(f"of a step's G + T = {whole:.4f} s the longer one takes {longer:.4f} s")
    show(
        "disaggregated_sync / disaggregated_async, seconds of training", values, f"within 10 % of {whole / longer:.3f}"
    )
