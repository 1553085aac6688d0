"""A hand-made report for the tests of the renderers. Its numbers are invented: they show no system."""

import math
import random
from typing import Any, Literal

from harness.compare.rows import Row, State
from harness.report.model import (
    Axis,
    Caution,
    Completion,
    Definition,
    FidelityRow,
    Figure,
    ReportModel,
    SelfReport,
)

HOSTILE = "</style></td><script>alert('x')</script><!-- `|` ![x](javascript:alert(1)) & \u202e\x07"
Direction = Literal["higher", "lower", "none"]

FIGURES: tuple[tuple[str, str, str, str, str, Direction], ...] = (
    ("throughput", "output_tokens_per_second", "Output tokens/s", "", "tokens/s", "higher"),
    ("throughput", "decode_tokens_per_second", "Decode tokens/s", "", "tokens/s", "higher"),
    ("throughput", "training_tokens_per_second", "Training tokens/s", "", "tokens/s", "higher"),
    ("throughput", "headroom_decode", "Decode, share of the roofline", "", "share", "higher"),
    ("stages", "t_seq_part_seconds", "Term of T_seq", "rollout", "s", "lower"),
    ("stages", "t_seq_part_seconds", "Term of T_seq", "train", "s", "lower"),
    ("stages", "t_seq_part_seconds", "Term of T_seq", "sync", "s", "lower"),
    ("stages", "unattributed_share", "Unattributed time", "", "share", "lower"),
    ("stages", "stage_seconds_p99", "Stage time, p99", "decode", "s", "lower"),
    ("lag and ratios", "lag_max", "Policy lag, largest", "", "updates", "none"),
    ("lag and ratios", "ess_tokens_share", "ESS / n, tokens", "", "share", "higher"),
    ("memory", "memory_peak_bytes", "Peak memory of the host", "", "bytes", "lower"),
    ("cost", "cost_device_seconds", "Cost of an informative update", "", "device-s", "lower"),
)
SYNC, COST = 6, 12
LEVELS = {
    "tokens/s": 900.0,
    "s": 0.21,
    "share": 0.43,
    "updates": 3.0,
    "bytes": 1.31e9,
    "device-s": 2.7,
}


def definitions() -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for topic, tag, title, _, unit, _ in FIGURES:
        text = f"{title}: the count over its stage's time, after the warm-up steps."
        found.setdefault(tag, Definition(tag, title, text, unit, "12.2.5", topic, len(found) + 1))
    return found


def row(
    adapter: str,
    figure: tuple[str, str, str, str, str, Direction],
    track: str = "free",
    repeats: int = 5,
    **changes: Any,
) -> Row:
    _, tag, _, variant, unit, direction = figure
    rng = random.Random(f"{adapter} {tag} {variant}")
    level = LEVELS[unit] * rng.uniform(0.5, 1.5)
    values = tuple(level * rng.gauss(1, 0.03) for _ in range(repeats))
    middle = sorted(values)[repeats // 2]
    several = repeats > 1
    content: dict[str, Any] = {
        "value": middle,
        "n": repeats,
        "low": min(values) if several else None,
        "high": max(values) if several else None,
        "state": "measured",
        "reason": None if several else "one repeat: no interval",
        "evidence": "spans: stage, t_start, t_end, output_tokens",
        "ratio": None if adapter == "reference" else 0.71,
        "ratio_low": 0.68 if several and adapter != "reference" else None,
        "ratio_high": 0.75 if several and adapter != "reference" else None,
        "pairs": repeats,
        "detectable": 0.031 if several else None,
    }
    return Row(
        adapter,
        "colocated_sync",
        track,
        tag,
        unit=unit,
        direction=direction,
        variant=variant,
        repeats=values,
        **content | changes,
    )


def empty_row(adapter: str, index: int, state: State, reason: str) -> Row:
    nothing: dict[str, Any] = {
        "value": None,
        "low": None,
        "high": None,
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
    }
    return row(adapter, FIGURES[index], state=state, reason=reason, n=0, **nothing, detectable=None)


def rows(repeats: int = 5) -> list[Row]:
    found = [row(adapter, figure, repeats=repeats) for figure in FIGURES for adapter in ("reference", "trl")]
    absent = "weights are shared: the trained module generates"
    found = [r for r in found if (r.adapter, r.variant) != ("trl", "sync")]
    found.append(empty_row("trl", SYNC, "absent stage", absent))
    found = [r for r in found if (r.adapter, r.measure) != ("trl", "cost_device_seconds")]
    found.append(row("trl", FIGURES[COST], value=math.inf, low=None, high=None, reason="no informative update"))
    return found


def cells(repeats: int = 5, adapters: tuple[str, ...] = ("reference", "trl")) -> list[dict[str, Any]]:
    return [
        {
            "cell_id": f"{adapter}.colocated_sync.free.r{repeat}",
            "adapter": adapter,
            "layout": "colocated_sync",
            "track": "free",
            "repeat": repeat,
            "status": "ok",
            "cause": None,
            "reason": None,
            "wall_s": 41.2 + repeat,
            "load_before": [0.4, 0.3, 0.2],
        }
        for repeat in range(repeats)
        for adapter in adapters
    ]


def series(adapter: str, repeat: int) -> dict[str, Any]:
    rng = random.Random(f"{adapter}{repeat}")
    slow = 1.0 if adapter == "reference" else 1.6
    stages = {"prefill": 0.05, "decode": 0.4, "verifier": 0.02, "forward_backward": 0.3, "optimizer_step": 0.03}
    steps = list(range(3, 20))
    spans: list[tuple[str, float, float]] = []
    clock = 0.0
    for stage, seconds in stages.items():
        spans.append((stage, clock, clock + seconds * slow))
        clock += seconds * slow + 0.004
    return {
        "reward": {
            "samples": [64 * (k + 1) for k in range(20)],
            "mean": [min(1, 0.35 + 0.02 * k + rng.gauss(0, 0.03)) if k != 4 else None for k in range(20)],
            "p95": [1.0] * 20,
        },
        "lag": {"lag": [0, 1, 2, 3], "records": [320] * 4} if adapter == "trl" else {"lag": [0], "records": [1280]},
        "log_ratio": {
            "low": [1, 9],
            "high": [8, 16],
            "label": ["1-8", "9-16"],
            "n": [800, 480],
            "mean_abs": [0.01, 0.02],
            "p05": [-0.02, -0.03],
            "p50": [0.001, -0.002],
            "p95": [0.02, 0.03],
        },
        "stages": {"step": steps}
        | {s: [v * slow * rng.gauss(1, 0.05) for _ in steps] for s, v in stages.items()}
        | {"unattributed": [0.02 * slow for _ in steps]},
        "memory": {
            "t": [float(t) for t in range(40)] + [5.5],
            "bytes": [int(1e9 + 3e8 * (t % 7) / 7) for t in range(40)] + [int(1.1e9)],
            "phase": [None] * 40 + ["rollout"],
            "source": ["pss"] * 41,
            "component": ["tree"] * 40 + ["process"],
        },
        "timeline": {
            "stage": [stage for stage, _, _ in spans],
            "start": [start for _, start, _ in spans],
            "end": [end for _, _, end in spans],
        },
    }


def axes() -> list[Axis]:
    def axis(adapter: str, name: str, declared: str, measured: str | None, **changes: Any) -> Axis:
        fields: dict[str, Any] = {"source": "adapters/x.py", "version": "1.16.0", "date": "2026-11-29", "reason": None}
        fields |= {"evidence": "spans: process, stage", "differs": False, "stale": None}
        return Axis(adapter, name, declared, measured=measured, **fields | changes)

    return [
        axis("reference", "placement", "colocated", "colocated: one process on cpu"),
        axis("trl", "placement", "colocated, or a vLLM server", "colocated: one process on cpu"),
        axis("reference", "synchrony", "synchronous", "synchronous: generation and training never overlap"),
        axis("trl", "synchrony", "synchronous", "asynchronous: overlap 12 % of the window", differs=True),
        axis("reference", "recovery", "own checkpoints", None, reason="no checkpoint was written in this run"),
        axis("trl", "recovery", "trainer checkpoints", None, reason="no checkpoint", stale="declared for 1.15.0"),
    ]


def report(repeats: int = 5) -> ReportModel:
    found = cells(repeats)
    fidelity = [
        ("group_size", 8, 8, "exact", ""),
        ("clip_high", 0.2, 0.28, "approximated", "its default is asymmetric"),
    ]
    return ReportModel(
        title="arithmetic through reference and trl",
        run_id="2026-11-29-101500-ab12",
        created="2026-11-29T10:15:00+00:00",
        finished="2026-11-29T10:22:41+00:00",
        profile="cpu",
        machine={"processor": "Example CPU", "cores": "2", "memory": "23.4 GiB", "GPUs": "none"},
        task={"task": "arithmetic", "model": "tiny", "steps": "20", "batch": "8 prompts × 8 completions"},
        code={"rlaxes": "0.1.0", "commit": "0123456789ab", "checkout": "clean"},
        adapters={
            "reference": {"title": "The reference loop", "version": "0.1.0", "sources": []},
            "trl": {"title": "TRL GRPOTrainer", "version": "1.16.0", "sources": ["https://github.com/huggingface/trl"]},
        },
        cells=found,
        cautions=[
            Caution(
                "trl · free", "7.1 % of its wall clock is in no span: every stage share may be that much too small."
            )
        ],
        rows=rows(repeats),
        definitions=definitions(),
        axes=axes(),
        fidelity=[
            FidelityRow(adapter, "colocated_sync", "free", name, asked, force, grade, note)  # type: ignore[arg-type]
            for adapter in ("reference", "trl")
            for name, asked, force, grade, note in (fidelity if adapter == "trl" else fidelity[:1])
        ],
        self_report=[
            SelfReport(
                "trl",
                "colocated_sync",
                "free",
                "step_time",
                "seconds inside training_step",
                0.8,
                "step_seconds",
                0.82,
                "s",
                0.976,
                "leaves out the optimizer step",
                None,
            ),
            SelfReport(
                "trl",
                "colocated_sync",
                "free",
                "entropy",
                "mean entropy",
                0.41,
                None,
                None,
                "",
                None,
                HOSTILE,
                "we have no such figure",
            ),
        ],
        completions=[
            Completion("reference", "colocated_sync", "free", "p0.b0.g0", 0, 1.0, "eos", "12"),
            Completion("trl", "colocated_sync", "free", "p0.b0.g0", 0, None, "length", HOSTILE),
        ],
        series={cell["cell_id"]: series(cell["adapter"], cell["repeat"]) for cell in found},
        figures=[Figure("lag", "Policy lag", "Share of trained records.", "Policy lag", "nothing was drawn")],
        provenance={
            "config hashes": {"reference.colocated_sync.free": "77aa"},
            "start order": [c["cell_id"] for c in found],
        },
    )
