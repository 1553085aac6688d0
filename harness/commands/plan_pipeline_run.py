"""`rlaxes plan pipeline run=RUN`: the formulas on the stages that a run measured, and what they leave unexplained."""

from collections.abc import Sequence
from statistics import median

from harness.commands.plan_formulas import plan_pipeline
from harness.commands.plan_measured import Compared, MeasuredCell, measured_cell
from harness.commands.plan_words import Answer, read_words, seconds
from harness.errors import UserError
from harness.measure.figures.pipeline import two_stages
from harness.measure.measure import UnmeasuredError

FURTHER = ("exposed", "devices", "G_devices", "T_devices")
"""What may be asked beside the measured stages, as without a run."""


def plan_pipeline_run(given: Sequence[str]) -> Answer:
    """G, T and their terms from a ledger, every formula on them, and the measured period and run beside their own.

    Raises:
        UserError: names the word that is wrong, or what the run lacks.
    """
    found = read_words(given, ("run", "cell", *FURTHER))
    cell = measured_cell(str(found["run"]), found.get("cell"))
    try:
        stages = [two_stages(view) for view in cell.views]
    except UnmeasuredError as error:
        raise UserError(f"{cell.name} of {cell.run}: {error}") from error
    rollout, train = (median(stage[place] for stage in stages) for place in (0, 1))
    batches = round(median(two_stages(view.whole_run())[2] for view in cell.views))
    further = [word for word in given if word.partition("=")[0] in FURTHER]
    answer = plan_pipeline([f"G={rollout:.9f}", f"T={train:.9f}", f"batches={batches}", *further])
    answer.more |= {"run": cell.run, "cell": cell.name, "repeats": len(cell.views)}
    _terms(answer, cell)
    synchronous = cell.config["layout"]["synchrony"] == "synchronous"
    _compare(answer, cell, synchronous=synchronous)
    _measured(answer, cell)
    if not synchronous:
        answer.warnings.append(
            "its stages ran side by side: each may have taken longer than it would alone, so C_seq and the speed-up "
            "are not what a synchronous layout would show; measure one"
        )
    return answer


def _terms(answer: Answer, cell: MeasuredCell) -> None:
    """What G and T are made of, in seconds an optimizer step."""
    for term in cell.variants("t_seq_part_seconds"):
        value = cell.middle(f"t_seq_part_seconds[{term}]")
        assert value is not None
        side = {"rollout": "G", "reward": "G", "other": "neither"}.get(term, "T")
        answer.add(f"T_{term}", value, seconds(value), f"measured, an optimizer step; in {side}")


def _compare(answer: Answer, cell: MeasuredCell, *, synchronous: bool) -> None:
    figures = {name: value for name, value, _, _ in answer.rows}
    period, formula = ("C_seq", "G + T") if synchronous else ("C_pipe", "max(G, T)")
    whole = "run_sequential_seconds" if synchronous else "run_overlapped_seconds"
    predicted = figures[period]
    assert isinstance(predicted, float)
    rows = [Compared("period", predicted, cell.middle("period_seconds"), formula, cell.why("period_seconds"))]
    if (run := cell.middle(whole)) is not None:
        said = "n (G + T), whole run" if synchronous else "T_n, whole run"
        rows.append(Compared("run", run, cell.middle("run_seconds"), said, cell.why("run_seconds")))
    for row in rows:
        row.add_to(answer, seconds)


def _measured(answer: Answer, cell: MeasuredCell) -> None:
    use = cell.middle("straggler_utilisation_batch")
    shown = f"{use:.3f}" if use is not None else cell.why("straggler_utilisation_batch")
    answer.add("U", use, shown, "measured: sum T_i / (n max T_i) of a batch")
    shares = [(cell.middle(f"critical_path_share[{s}]") or 0.0, s) for s in cell.variants("critical_path_share")]
    chain = ", ".join(f"{stage} {share:.0%}" for share, stage in sorted(shares, reverse=True) if share >= 0.005)
    answer.add("critical_path", cell.middle("critical_path_seconds"), chain or "not measured", "measured, by stage")
    answer.more["critical_path"] = {stage: share for share, stage in shares}
