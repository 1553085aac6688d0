"""What plots are drawn from: series of one cell as JSON-able data, of bounded size however large the ledger is."""

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.measure.columns import Array, quantiles_by_code
from harness.measure.figures.importance import SequenceEssShare, ratio_rows
from harness.measure.figures.memory import memory_samples
from harness.measure.figures.mismatch import bucket_label, length_buckets
from harness.measure.figures.queue import events
from harness.measure.measure import UnmeasuredError
from harness.measure.spans import Spans
from harness.measure.steady import step_seconds
from harness.measure.view import CellView

MOST_POINTS = 2000
"""Longer series are thinned evenly; histograms and sums are made from all of it first."""
MOST_SPANS = 4000
Series = dict[str, Any]


def cell_series(view: CellView) -> Series:
    """Every series of a cell, by name; one that cannot be had is `{"reason": why}` in place of its columns.

    Times are seconds from the start of the window (negative: in the warm-up). Names and columns:
    `timeline` (Gantt of the last whole generated batch): stage, process, device, trace_id, step, start, end;
    `steps` (of the whole run): step, seconds, warmup (whether the figures leave it out);
    `stages`: step, and for each stage the seconds of that optimizer step, `unattributed` among them;
    `memory`: t, bytes, phase, source, component; `reward` and `length`: samples (so far in the run), mean, p95, one
    point a generated batch; `lag`: lag, records, tokens; `log_ratio` by completion length: low, high, label, n,
    mean_abs, p05, p50, p95 of the mean log w of a completion, and sum_p05, sum_p50, sum_p95 of their sum, which grows
    with the length where the mean does not; `updates`: step, loss, grad_norm, ess_share, lag_mean,
    clip_fraction; `lengths`: label, low, high, records; `queue`: t, records, tokens after each event, and closed_from,
    closed_to, limit of each time in which admission was closed.
    """
    makers: dict[str, Callable[[CellView], Series]] = {
        "timeline": _timeline,
        "steps": _steps,
        "stages": _stages,
        "memory": _memory,
        "reward": _reward,
        "length": _length,
        "lag": _lag,
        "log_ratio": _log_ratio,
        "updates": _updates,
        "lengths": _lengths,
        "queue": _queue,
    }
    return {name: _tried(maker, view) for name, maker in makers.items()}


def _tried(maker: Callable[[CellView], Series], view: CellView) -> Series:
    try:
        return maker(view)
    except UnmeasuredError as why:
        return {"reason": str(why)}


def _seconds(view: CellView, times: Array) -> list[float]:
    return [float(t) for t in (times - view.window.t_start) / 1e9]


def _thin(*columns: Array) -> list[Array]:
    stride = -(-len(columns[0]) // MOST_POINTS) if len(columns[0]) else 1
    return [column[::stride] for column in columns]


def _timeline(view: CellView) -> Series:
    """From the first span of the last generated batch to the end of the last optimizer step that consumes it."""
    trained, rollouts = view.tables.trained, view.tables.rollouts
    rows = view.trained & (trained.rollout >= 0)
    if not rows.any():
        raise UnmeasuredError("no step of the window consumed a known rollout")
    last = int(trained.step[rows].max())
    trace = rollouts.traces[int(rollouts.trace[trained.rollout[rows & (trained.step == last)]].max())]
    spans = view.tables.spans
    named = np.array([name == trace for name in spans.names["trace_id"]], dtype=bool)
    of_batch = spans.where(named[spans.trace_id])
    if not len(of_batch):
        raise UnmeasuredError(f"no span carries the trace id {trace}")
    update = view.updates
    start, end = int(of_batch.t_start.min()), int(update["t_end"][update["step"] == last][0])
    shown = spans.where(np.flatnonzero((spans.t_end > start) & (spans.t_start < end))[:MOST_SPANS])
    return {
        "stage": shown.stage_names(),
        "process": _texts(shown, "process"),
        "device": _texts(shown, "device"),
        "trace_id": _texts(shown, "trace_id"),
        "step": shown.step.tolist(),
        "start": _seconds(view, shown.t_start),
        "end": _seconds(view, shown.t_end),
    }


def _texts(spans: Spans, column: str) -> list[str]:
    return [spans.names[column][code] for code in getattr(spans, column)]


def _steps(view: CellView) -> Series:
    steps, seconds = view.tables.updates["step"], step_seconds(view)
    step, seconds, dropped = _thin(steps, seconds, np.arange(len(steps)) < view.window.dropped)
    return {"step": step.tolist(), "seconds": seconds.tolist(), "warmup": dropped.tolist()}


def _stages(view: CellView) -> Series:
    """Between the ends of successive optimizer steps: the seconds of each stage's spans that begin there."""
    spans, ends = view.spans, view.updates["t_end"]
    slot = np.minimum(np.searchsorted(ends, spans.t_start, side="right"), len(ends) - 1)
    wall = np.diff(np.concatenate([[view.window.t_start], ends])) / 1e9
    columns: dict[str, Array] = {}
    for name in dict.fromkeys(spans.stage_names()):
        chosen = spans.stage == spans.names["stage"].index(name)
        columns[name] = np.bincount(slot[chosen], weights=spans.seconds[chosen], minlength=len(ends))
    rest = wall - sum(columns.values(), np.zeros(len(ends)))
    columns["unattributed"] = np.maximum(rest, 0.0)
    names = ["step", *columns]
    return {n: c.tolist() for n, c in zip(names, _thin(view.updates["step"], *columns.values()), strict=True)}


def _memory(view: CellView) -> Series:
    samples = list(memory_samples(view))
    if not samples:
        raise UnmeasuredError("memory was not sampled")
    samples = samples[:: -(-len(samples) // MOST_POINTS)]
    fields = ("bytes", "source", "component")
    times = np.array([row["t"] for row, _ in samples], dtype=np.int64)
    columns = {name: [row[name] for row, _ in samples] for name in fields}
    return {"t": _seconds(view, times), "phase": [phase for _, phase in samples], **columns}


def _by_batch(view: CellView, values: Array) -> Series:
    """One point a generated batch of the whole run, in the order of the ledger, of the values that are there."""
    trace = view.tables.rollouts.trace
    if not len(trace):
        raise UnmeasuredError("there are no rollouts")
    codes, first, counts = np.unique(trace, return_index=True, return_counts=True)
    order = np.argsort(first)
    (shown, so_far) = _thin(codes[order], np.cumsum(counts[order]))
    known = np.isfinite(values)
    rows = known & np.isin(trace, shown)
    mean = np.bincount(trace[rows], weights=values[rows], minlength=len(codes))
    number = np.bincount(trace[rows], minlength=len(codes))
    (p95,) = quantiles_by_code(trace[rows], values[rows], 0.95)
    tails = dict(zip(np.unique(trace[rows]).tolist(), p95.tolist(), strict=True))
    return {
        "samples": so_far.tolist(),
        "mean": [float(mean[code] / number[code]) if number[code] else None for code in shown],
        "p95": [tails.get(int(code)) for code in shown],
    }


def _split(code: Array, values: Array) -> dict[int, Array]:
    order = np.argsort(code, kind="stable")
    codes, begins = np.unique(code[order], return_index=True)
    return {int(c): part for c, part in zip(codes, np.split(values[order], begins[1:]), strict=True)}


def _reward(view: CellView) -> Series:
    return _by_batch(view, view.tables.rollouts.reward)


def _length(view: CellView) -> Series:
    return _by_batch(view, view.tables.rollouts.policy_tokens.astype(np.float64))


def _lag(view: CellView) -> Series:
    trained = view.tables.trained
    rows = view.trained & (trained.lag >= 0)
    if not rows.any():
        raise UnmeasuredError("no consumed record tells the version that it was sampled at")
    lag, tokens = trained.lag[rows], trained.policy_tokens[rows]
    values, which = np.unique(lag, return_inverse=True)
    return {
        "lag": values.tolist(),
        "records": np.bincount(which).tolist(),
        "tokens": np.bincount(which, weights=tokens).astype(int).tolist(),
    }


def _bucket_edges(number: int) -> Series:
    label = bucket_label(number)
    low, high = label.split("-")
    return {"label": label, "low": int(low), "high": int(high)}


def _log_ratio(view: CellView) -> Series:
    trained, rows = view.tables.trained, ratio_rows(view)
    buckets = length_buckets(view.tables.rollouts.policy_tokens[trained.rollout[rows]])
    out: list[Series] = []
    for number, part in _split(buckets, rows).items():
        tokens = trained.defined[part]
        low, middle, high = _bounds(trained.log_w[part] / tokens)
        absolute = float(trained.absolute[part].sum(dtype=np.float64) / tokens.sum())
        row = {"n": len(part), "mean_abs": absolute, "p05": low, "p50": middle, "p95": high}
        row |= dict(zip(("sum_p05", "sum_p50", "sum_p95"), _bounds(trained.log_w[part]), strict=True))
        out.append(_bucket_edges(number) | row)
    return {name: [row[name] for row in out] for name in out[0]}


def _bounds(values: Array) -> tuple[float, float, float]:
    low, middle, high = (float(q) for q in np.quantile(values, (0.05, 0.5, 0.95)))
    return low, middle, high


def _updates(view: CellView) -> Series:
    update, trained = view.updates, view.tables.trained
    (shown,) = _thin(np.arange(len(update["step"])))
    steps = [int(step) for step in update["step"][shown]]
    rows = np.flatnonzero(view.trained & np.isin(trained.step, steps))
    parts = _split(trained.step[rows], rows)
    shares: dict[int, float] = {}
    try:
        found = SequenceEssShare().by_step(view)
        shares = dict(zip(found.step.tolist(), (found.ess / found.n).tolist(), strict=True))
    except UnmeasuredError:  # the other columns are there all the same
        pass
    return {
        "step": steps,
        "loss": [_finite(value) for value in update["loss"][shown]],
        "grad_norm": [_finite(value) for value in update["grad_norm"][shown]],
        "ess_share": [shares.get(step) for step in steps],
        "lag_mean": [_mean_lag(trained.lag[parts[step]]) if step in parts else None for step in steps],
        "clip_fraction": [_clip(view, parts[step]) if step in parts else None for step in steps],
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _mean_lag(lag: Array) -> float | None:
    known = lag[lag >= 0]
    return float(known.mean()) if len(known) else None


def _clip(view: CellView, rows: Array) -> float | None:
    trained = view.tables.trained
    chosen = rows[trained.clipped[rows] & (trained.defined[rows] > 0)]
    return float(trained.outside[chosen].sum() / trained.defined[chosen].sum()) if len(chosen) else None


def _lengths(view: CellView) -> Series:
    tokens = view.tables.rollouts.policy_tokens[view.rollouts]
    if not len(tokens):
        raise UnmeasuredError("no completion ended in the window")
    numbers, counts = np.unique(length_buckets(tokens), return_counts=True)
    edges = [_bucket_edges(int(number)) for number in numbers]
    return {**{name: [edge[name] for edge in edges] for name in edges[0]}, "records": counts.tolist()}


def _queue(view: CellView) -> Series:
    """Depth after each event of the whole run; a closing lasts until admission opens or another limit closes it."""
    log = events(view)
    end = view.window.t_end
    turns: Array = np.flatnonzero(log.are("close", "open"))
    closings: Array = turns[log.are("close")[turns]]
    places: Array = np.searchsorted(turns, closings, side="right")
    shut = np.append(log.t[turns], end)[places]
    t, records, tokens = _thin(log.t, log.depth["records"], log.depth["tokens"])
    starts, ends, reasons = _thin(log.t[closings], shut, log.reason[closings])
    return {
        "t": _seconds(view, t),
        "records": records.tolist(),
        "tokens": tokens.tolist(),
        "closed_from": _seconds(view, starts),
        "closed_to": _seconds(view, ends),
        "limit": [log.reasons[code] for code in reasons],
    }
