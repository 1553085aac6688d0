"""`rlaxes plan what-if`: what other layouts would do, from what one synchronous cell measured."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.commands.plan_words import read_words, seconds
from harness.errors import UserError
from harness.execute.provenance import rlaxes_version
from harness.simulate.calibrate import Calibration, calibrate, decoding_law, not_held, shares
from harness.simulate.calibrate_predict import Prediction, Variant, predict
from harness.simulate.reading import nearest, number

LAYOUTS = ("colocated_sync", "colocated_overlap", "disaggregated_sync", "disaggregated_async")
KNOWN = ("cell", "layout", "lag_bound", "replicas", "ranks", "batches", "resamples", "seed")
DEFAULTS = {"lag_bound": "1,2,4", "batches": 40, "resamples": 20, "seed": 17}
COVERS = (
    "95 % of predictions from measured batches drawn anew (repeats first, where there are several), each with a seed "
    "of its own. It covers neither what this calibration does not hold nor another hour of the machine"
)


def what_if(folder: Path, given: Sequence[str]) -> dict[str, Any]:
    """Calibrate on a run, predict each variant, and say what is not held; see `print_what_if`.

    Raises:
        UserError: names the word that is wrong, or what the run lacks.
    """
    asked: dict[str, Any] = DEFAULTS | read_words(given, KNOWN)
    found = calibrate(folder, asked.get("cell"))
    counts = counts_of(asked)
    variants = variants_of(asked, replicas=found.replicas, ranks=found.ranks)
    predictions = [predict(found, variant, **counts) for variant in variants]
    return {
        "run": found.run,
        "cell": found.cell,
        "command": " ".join(["rlaxes plan what-if", folder.name, *given]),
        "rlaxes": rlaxes_version(),
        "calibration": _told(found),
        "predictions": [row_of(prediction, found.batches.typical) for prediction in predictions],
        "interval": COVERS,
        "not_held": not_held(found),
    }


def print_what_if(told: Mapping[str, Any]) -> None:
    """The calibration by its parts, a row a variant, and what it does not say."""
    held, console = told["calibration"], Console(width=120, highlight=False)
    console.print(
        f"calibrated on {told['cell']} of {told['run']}: {held['batches']} batches, {seconds(held['period_s'])} each",
        markup=False,
    )
    parts = Table(box=None, show_header=False)
    for name, value in held["parts_s"].items():
        parts.add_row(escape(name), f"{value * 1e3:,.4g} ms", f"{value / held['period_s']:.1%}")
    console.print(parts)
    print_predictions(told, console)


def print_predictions(told: Mapping[str, Any], console: Console) -> None:
    """A row a variant, why some are refused, what the interval covers and what is not held."""
    share = "of logged" if told.get("evidence") else "of measured"
    table = Table("", "bound", "split", "period", "interval", share, "tokens/s", "trainer idle", "lag", box=None)
    for row in told["predictions"]:
        table.add_row(*_cells(row))
    console.print(table)
    refused = {row["refused"]: None for row in told["predictions"] if row["refused"]}
    for why in refused:
        console.print(f"refused: {why}", markup=False)
    console.print(f"interval: {told['interval']}", markup=False)
    console.print("not held by this calibration:")
    for line in told["not_held"]:
        console.print(f"- {line}", markup=False)


def counts_of(asked: Mapping[str, Any]) -> dict[str, int]:
    """How much is simulated.

    Raises:
        UserError: a number is none, or too small.
    """
    counts = {key: number(asked[key], key, whole=True) for key in ("batches", "resamples", "seed")}
    if counts["batches"] < 10:
        raise UserError(f"batches={counts['batches']}: at least 10, so that a pipeline is full in most of them")
    return counts


def variants_of(asked: Mapping[str, Any], *, replicas: int, ranks: int) -> list[Variant]:
    """The variants that are asked for; `replicas` and `ranks` are those of the calibration.

    Raises:
        UserError: a layout or a number is none.
    """
    layouts = [name.strip() for name in str(asked.get("layout", ",".join(LAYOUTS))).split(",")]
    if unknown := [name for name in layouts if name not in LAYOUTS]:
        raise UserError(f"layout={unknown[0]}: no such layout{nearest(unknown[0], list(LAYOUTS))}")
    bounds = _numbers(asked, "lag_bound", 0)
    splits = _numbers(asked, "replicas", replicas), _numbers(asked, "ranks", ranks)
    if 0 in (*splits[0], *splits[1]):
        raise UserError("replicas=0 or ranks=0: somebody has to generate, and somebody to train")
    out = []
    for layout in layouts:
        own = bounds if layout == "disaggregated_async" else [0]
        if layout.startswith("colocated"):
            out.append(Variant(layout, 0, replicas, ranks))
        else:
            out += [Variant(layout, bound, r, t) for bound in own for r in splits[0] for t in splits[1]]
    return list(dict.fromkeys(out))


def _numbers(asked: Mapping[str, Any], key: str, default: int) -> list[int]:
    return [number(part.strip(), key, whole=True) for part in str(asked.get(key, default)).split(",")]


def _told(found: Calibration) -> dict[str, Any]:
    batches = found.batches
    return {
        "layout": found.cell.split(".")[1],
        "batches": len(batches),
        "repeats": len(set(batches.repeat.tolist())),
        "period_s": batches.typical,
        "mean_period_s": float(batches.period.mean()),
        "parts_s": shares(batches),
        "decoding": asdict(decoding_law(batches, found.samples)),
        "replicas": found.replicas,
        "ranks": found.ranks,
        "cores": found.cores,
        "tokens_per_batch": float(batches.tokens.mean()),
    }


def row_of(prediction: Prediction, typical: float, split: str | None = None) -> dict[str, Any]:
    """A prediction for `--json`; `typical` is the period that it was calibrated on, in seconds; `split` says how
    devices were split where no processes were counted."""
    variant = prediction.variant
    figures: dict[str, Any] = prediction.figures or {"period_s": None}
    ratio = figures["period_s"] and figures["period_s"] / typical
    counted = {"split": f"{variant.replicas} + {variant.ranks}"}
    named = counted if split is None else {"split": split, "replicas": None, "ranks": None}
    identity = {**asdict(variant), **named, "refused": prediction.refused}
    return identity | figures | {"ratio": ratio, "interval": prediction.intervals}


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    asked = row["layout"], str(row["lag_bound"]), row["split"]
    if row["refused"]:
        return (*asked, "refused", *["-"] * 5)
    ends = [f"{end:.4g}" for end in row["interval"].get("period_s", ())]
    return (
        *asked,
        f"{row['period_s']:.4g} s",
        " to ".join(ends) or "-",
        f"{row['ratio']:.2f}x",
        f"{row['tokens_per_s']:,.0f}" if "tokens_per_s" in row else "-",
        f"{row['trainer_idle']:.1%}",
        f"{row['lag_mean']:.2f}",
    )
