"""`rlaxes plan what-if` on an ingested run: what other layouts would do, from what a framework logged of its steps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.commands.plan_what_if import DEFAULTS, counts_of, print_predictions, row_of, variants_of
from harness.commands.plan_words import read_words, seconds
from harness.errors import UserError
from harness.execute.provenance import rlaxes_version
from harness.ingest.keymap import key_map
from harness.report.grades import Evidence
from harness.simulate.calibrate_predict import Prediction, Variant
from harness.simulate.calibrate_spans import Floats
from harness.simulate.logged import NEEDED, Logged, framework_of_run, read_logged
from harness.simulate.logged_predict import (
    PLACEMENTS,
    Asked,
    calibrate_logged,
    counted_tokens,
    not_held_by_log,
    parts_of_log,
    predict_logged,
    refused_beside,
)
from harness.simulate.reading import number

SPLIT = ("replicas", "ranks")
SHAPE = ("batch.groups", "group_size")
KNOWN = (*SPLIT, *SHAPE, "placement", "layout", "lag_bound", "batches", "resamples", "seed", "transfer_s")
GRADE: Evidence = "replayed from logs"
AS_LOGGED = "as logged"
COVERS = (
    "95 % of predictions from logged steps drawn anew, each with a seed of its own. It covers neither what a log does "
    "not hold, nor a trend over the run, nor another hour of the machines"
)


def what_if_logged(folder: Path, given: Sequence[str]) -> dict[str, Any]:
    """Calibrate on what a log holds, predict each variant that it can carry, and say what it does not hold.

    Raises:
        UserError: names the word that is wrong or missing, or the keys that the log lacks.
    """
    words: dict[str, Any] = DEFAULTS | read_words(given, KNOWN)
    if given_split := [key for key in SPLIT if key in words]:
        raise UserError(
            f"{given_split[0]}=: a log does not tell how seconds of a stage change with devices: ingest logs of runs "
            f"with other splits"
        )
    found = read_logged(folder, _expected(framework_of_run(folder)))
    counts = counts_of(words)
    asked = None if found.beside else _asked(found, words)
    variants = variants_of(words, replicas=1, ranks=1)
    if asked is None:
        why = refused_beside(found)
        rows = [row_of(Prediction(variant, {}, {}, why), 0.0, AS_LOGGED) for variant in variants]
    else:
        rows = _rows(found, asked, variants, counts)
    return {
        "run": found.run,
        "cell": found.framework,
        "evidence": GRADE,
        "command": " ".join(["rlaxes plan what-if", folder.name, *given]),
        "rlaxes": rlaxes_version(),
        "calibration": _told(found, asked),
        "predictions": rows,
        "interval": COVERS,
        "not_held": not_held_by_log(found, asked),
    }


def print_what_if_logged(told: Mapping[str, Any]) -> None:
    """The calibration by its stages with the keys that say them, a row a variant, and what it does not say."""
    held, console = told["calibration"], Console(width=120, highlight=False)
    version = held["version"] or "version not told"
    left = f", {held['left_out']} more left out: a validation is within their seconds" if held["left_out"] else ""
    console.print(
        f"{told['evidence']}: {told['cell']} ({version}), {held['steps']} steps{left}; median step "
        f"{seconds(held['period_s'])}, mean {seconds(held['mean_period_s'])}, standard deviation "
        f"{seconds(held['period_sd_s'])}",
        markup=False,
    )
    parts = Table("", "mean", "sd", "of a step", "logged as", box=None)
    for name, part in held["parts"].items():
        shown = f"{part['mean_s']:.4g} s", f"{part['sd_s']:.2g} s", f"{part['share']:.1%}"
        parts.add_row(escape(name), *shown, escape(", ".join(part["keys"])))
    console.print(parts)
    if held["beside"]:
        why = "how long each stage was busy in a step, and shares need not add up"
        console.print(f"asynchronous ({held['beside']}): {why}", markup=False)
    if held["completion_tokens"] is not None:
        counted = f", {held['completions']:,.6g} a step ({held['counted']})" if held["completions"] else ""
        console.print(f"completions: {held['completion_tokens']:,.4g} tokens, mean of steps{counted}", markup=False)
    for key, why in held["caveats"].items():
        console.print(f"{key}: {why}", markup=False)
    for key, inside in held["within_generate_s"].items():
        share = inside / held["parts"]["generate"]["mean_s"]
        console.print(
            f"{key}: {inside:.4g} s, {share:.1%} of generate; the rest of it is kept whole in every layout",
            markup=False,
        )
    if held["apart"]:
        console.print(f"disaggregated: {held['apart']}", markup=False)
    print_predictions(told, console)


def _expected(framework: str) -> dict[str, list[str]]:
    entries = key_map(framework).entries
    return {stage: list(dict.fromkeys(e.key for e in entries if e.our_stage == stage)) for stage in NEEDED}


def _asked(found: Logged, words: Mapping[str, Any]) -> Asked:
    placement = words.get("placement")
    if placement not in PLACEMENTS:
        given = f"placement={placement}" if placement else f"{found.run}: its log does not say where it generated"
        raise UserError(
            f"{given}: give placement=colocated (generation and training on the same devices) or "
            f"placement=disaggregated"
        )
    shape = [words.get(key) for key in SHAPE]
    if None in shape and shape != [None, None]:
        raise UserError("batch.groups= and group_size= make a batch together: give both, or neither")
    groups, size = (
        None if value is None else number(value, key, whole=True) for key, value in zip(SHAPE, shape, strict=True)
    )
    samples = None if groups is None else groups * size
    if samples == 0:
        raise UserError("batch.groups= and group_size=: a step has at least one completion")
    transfer = words.get("transfer_s")
    if transfer is not None and placement == "disaggregated":
        raise UserError(
            "transfer_s= is for a log of a colocated run: one of a disaggregated run holds its own transfer"
        )
    return Asked(placement, samples, None if transfer is None else number(transfer, "transfer_s"))


def _rows(found: Logged, asked: Asked, variants: Sequence[Variant], counts: Mapping[str, int]) -> list[dict[str, Any]]:
    calibration = calibrate_logged(found, asked)
    typical = calibration.batches.typical
    return [
        row_of(
            predict_logged(calibration, asked, variant, **counts),
            typical,
            AS_LOGGED if variant.placement == asked.placement else "all + all",
        )
        for variant in variants
    ]


def _told(found: Logged, asked: Asked | None) -> dict[str, Any]:
    period, parts = found.period, parts_of_log(found)
    tokens = None if asked is None else counted_tokens(found, asked)
    samples: float | None = asked.samples if asked else None
    if samples is None and found.samples is not None:
        samples = float(found.samples.mean())
    apart = None
    if asked is not None and asked.transfer_s is not None:
        apart = (
            f"each side has as many devices as the logged run had for both, twice as many in all; "
            f"{asked.transfer_s:g} s a step for handing over weights were given, not logged; what colocation costs in "
            f"a stage is kept in it"
        )
    return {
        "version": found.version,
        "steps": len(period),
        "left_out": found.left_out,
        "placement": asked and asked.placement,
        "beside": found.beside,
        "period_s": _middle(period),
        "mean_period_s": float(period.mean()),
        "period_sd_s": float(period.std(ddof=1)),
        "parts": {name: _part(values, period, found.keys.get(name, ())) for name, values in parts.items()},
        "caveats": dict(found.caveats),
        "within_generate_s": {key: float(values.mean()) for key, values in found.within_generate.items()},
        "completion_tokens": None if found.lengths is None else float(found.lengths.mean()),
        "completions": samples,
        "counted": None if samples is None else "logged" if asked is None or asked.samples is None else "given",
        "tokens_per_batch": None if tokens is None else float(tokens.mean()),
        "apart": apart,
    }


def _middle(values: Floats) -> float:
    return float(sorted(values)[len(values) // 2] + sorted(values)[(len(values) - 1) // 2]) / 2


def _part(values: Floats, period: Floats, keys: Sequence[str]) -> dict[str, Any]:
    return {
        "mean_s": float(values.mean()),
        "sd_s": float(values.std(ddof=1)),
        "share": float(values.sum() / period.sum()),
        "keys": list(keys),
    }
