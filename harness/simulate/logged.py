"""From a run that was ingested: what its framework wrote of the seconds and tokens of its steps, by its key map alone.

A number is taken where the key map says by definition what it is (`quantity`, `our_stage`), and under no other name.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harness.contract import NativeSeries, read_cell
from harness.errors import UserError
from harness.simulate.calibrate_spans import MOST_OVERLAP, Floats

Steps: TypeAlias = npt.NDArray[np.int64]
STEP, STAGE, WAIT = "step_seconds", "stage_seconds", "wait_seconds"
OUTSIDE, CONCURRENT = "outside_seconds", "concurrent_seconds"
LENGTH, SAMPLES, TOKENS = "response_length_mean", "samples", "response_tokens"
LAGS = ("lag_mean", "lag_max")
NEEDED = {"generate": "seconds of generation", "forward_backward": "seconds of training"}
"""Without these nothing of a loop can be said."""
VALIDATION = "validation"
SYNCHRONOUS, ASYNCHRONOUS = "sync", "async"
"""How logs say their mode (`settings.mode` of a manifest)."""
LEAST_STEPS = 2


@dataclass(frozen=True)
class Logged:
    """What a log says of each of its steps, after the warm-up; arrays are [steps], seconds or tokens.

    Attributes:
        version: of the framework; None where the log does not tell it.
        stages: by our stage, the seconds of all the framework's own stages that are nearest to it.
        keys: by our stage, the native keys that this is of.
        caveats: by native key, what else the key map says that its seconds hold.
        within_generate: by native key, the part of generation in which completions are made, where one says it.
        step: the step's own seconds; None where no key says them.
        waiting: seconds in which the trainer waited for rollouts; None where no key says them.
        beside: why its stages are no sequence; None where they are taken for one.
        mode: whether the log says that its mode is synchronous.
        lengths: the mean length of a completion; None where no key says it.
        samples, tokens: completions and tokens of completions of a step; None where no key says them.
        left_out: steps that hold a validation within their seconds, and are not read.
    """

    run: str
    framework: str
    version: str | None
    stages: Mapping[str, Floats]
    keys: Mapping[str, Sequence[str]]
    caveats: Mapping[str, str]
    within_generate: Mapping[str, Floats]
    step: Floats | None
    waiting: Floats | None
    beside: str | None
    mode: bool
    lengths: Floats | None
    samples: Floats | None
    tokens: Floats | None
    left_out: int

    @property
    def busy(self) -> Floats:
        """Seconds of a step in all stages together."""
        whole: Floats = np.sum(list(self.stages.values()), axis=0)
        return whole

    @property
    def period(self) -> Floats:
        """Seconds of a step: its own, or where no key says them those of its stages together."""
        return self.busy if self.step is None else self.step


def is_ingested(folder: Path) -> bool:
    """Whether a run was read from a framework's own files."""
    return bool(_manifest(folder).get("ingested"))


def framework_of_run(folder: Path) -> str:
    """Whose log an ingested run is."""
    return str(_manifest(folder)["framework"])


def read_logged(folder: Path, expected: Mapping[str, Sequence[str]]) -> Logged:
    """Read an ingested run.

    Args:
        expected: by our stage the native keys that the framework's key map has for it, to name what is missing.

    Raises:
        UserError: names the keys that are missing, or how few steps there are.
    """
    manifest = _manifest(folder)
    series = [one for one in map(NativeSeries.from_dict, manifest["series"]) if one.known and one.quantity]
    trained = [one for one in series if one.trained]
    mode = str((manifest.get("settings") or {}).get("mode") or "")
    beside = _beside(trained, mode)
    needed = [stage for stage in NEEDED if stage != "generate" or not beside]
    _all_there(manifest, trained, expected, needed)
    native = _Native(folder, manifest["cells"][0]["cell_id"])
    step = _best(trained, STEP)
    stages_of = _one_a_stage(trained)
    steps = native.steps([*([step] if step else []), *(one for one in stages_of if one.our_stage in NEEDED)])
    steps = steps[int(manifest.get("warmup_steps") or 0) :]
    kept = steps[~np.isin(steps, _validated(native, manifest, series))]
    if len(kept) < LEAST_STEPS:
        raise UserError(
            f"{folder.name}: {len(kept)} numbered steps of its log have their seconds (of generation, of training, of "
            f"the step): too few to calibrate on"
        )
    named: dict[str, list[NativeSeries]] = {}
    for one in (one for one in stages_of if np.nansum(native.of(one, kept)) > 0):
        named.setdefault(str(one.our_stage), []).append(one)
    if nothing := [why for stage, why in NEEDED.items() if stage in needed and stage not in named]:
        raise UserError(f"{folder.name}: {nothing[0]} are 0 in every step of its log")
    stages = {
        stage: np.sum([np.nan_to_num(native.of(one, kept)) for one in ones], axis=0) for stage, ones in named.items()
    }
    whole = native.of(step, kept) if step else None
    busy = float(np.sum(list(stages.values())))
    if beside is None and whole is not None and busy > (1 + MOST_OVERLAP) * float(whole.sum()):
        beside = f"its stages take {busy / whole.sum():.0%} of its steps: some ran side by side"
    lengths, samples, tokens = (
        native.whole(found, kept) if (found := _best(trained, quantity)) else None
        for quantity in (LENGTH, SAMPLES, TOKENS)
    )
    waits = [native.of(one, kept) for one in trained if one.quantity == WAIT]
    return Logged(
        run=manifest["run_id"],
        framework=manifest["framework"],
        version=manifest.get("version"),
        stages=stages,
        keys={stage: [one.key for one in ones] for stage, ones in named.items()},
        caveats={one.key: one.differs_because for ones in named.values() for one in ones if one.differs_because},
        within_generate={
            one.key: values
            for one in trained
            if one.quantity == CONCURRENT and not beside and (values := native.whole(one, kept)) is not None
        },
        step=whole,
        waiting=np.sum(np.nan_to_num(waits), axis=0) if waits else None,
        beside=beside,
        mode=mode == SYNCHRONOUS,
        lengths=lengths,
        samples=samples,
        tokens=tokens,
        left_out=len(steps) - len(kept),
    )


class _Native:
    """The numbers of the table `native`, in our units."""

    def __init__(self, folder: Path, cell: str) -> None:
        try:
            self._table: pa.Table = read_cell(folder / "ledger", cell).table("native", ["step", "key", "value"])
            self._keys = self._table["key"].cast(pa.string())
        except ValueError as error:
            raise UserError(str(error)) from error
        self._found: dict[str, dict[int, float]] = {}

    def by_step(self, one: NativeSeries) -> dict[int, float]:
        """By step a number that is finite."""
        if one.stored not in self._found:
            rows = self._table.filter(pc.equal(self._keys, one.stored))
            pairs = zip(rows["step"].to_pylist(), rows["value"].to_pylist(), strict=True)
            self._found[one.stored] = {
                step: value * one.scale for step, value in pairs if step is not None and np.isfinite(value)
            }
        return self._found[one.stored]

    def steps(self, series: Sequence[NativeSeries]) -> Steps:
        """Steps that each of them has a number of."""
        found: Steps = np.array(sorted(set.intersection(*(set(self.by_step(one)) for one in series))), dtype=np.int64)
        return found

    def of(self, one: NativeSeries, steps: Steps) -> Floats:
        """[steps], NaN where it has no number."""
        found = self.by_step(one)
        return np.array([found.get(int(step), np.nan) for step in steps], dtype=np.float64)

    def whole(self, one: NativeSeries, steps: Steps) -> Floats | None:
        """[steps]; None where some step has no number."""
        found = self.of(one, steps)
        return found if np.isfinite(found).all() else None


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return found


def _best(series: Sequence[NativeSeries], quantity: str) -> NativeSeries | None:
    """Of several keys of a quantity the one of the whole run before one of its parts, and then the fullest."""
    found = [one for one in series if one.quantity == quantity]
    return max(found, key=lambda one: (one.scope == "run", not one.part, one.n), default=None)


def _one_a_stage(series: Sequence[NativeSeries]) -> list[NativeSeries]:
    """Loggers write a stage under several keys: each counts once."""
    names = dict.fromkeys(one.stage for one in series if one.quantity == STAGE)
    found = [_best([one for one in series if one.stage == name], STAGE) for name in names]
    return [one for one in found if one]


def _beside(series: Sequence[NativeSeries], mode: str) -> str | None:
    if ASYNCHRONOUS in mode:
        return f"its mode is {mode}"
    for one in series:
        if one.quantity == WAIT:
            return f"{one.key} says that its trainer waited for rollouts that were made beside it"
        if one.quantity in LAGS and (one.first or one.last):
            return f"{one.key} says that it learned from rollouts of older weights"
    return None


def _all_there(
    manifest: Mapping[str, Any],
    series: Sequence[NativeSeries],
    expected: Mapping[str, Sequence[str]],
    needed: Sequence[str],
) -> None:
    held = {one.our_stage for one in series if one.quantity == STAGE}
    told = []
    for stage in needed:
        if stage not in held:
            keys = " or ".join(expected.get(stage, ())) or f"no key of {manifest['framework']} is that"
            told.append(f"{NEEDED[stage]} ({keys})")
    if told:
        raise UserError(
            f"{manifest['run_id']} is a log of {manifest['framework']} that lacks the seconds of its stages, and "
            f"nothing can be calibrated on it. Missing: {', '.join(told)}"
        )


def _validated(native: _Native, manifest: Mapping[str, Any], series: Sequence[NativeSeries]) -> Steps:
    """Steps with a validation, unless the key map says that a step's seconds leave it out."""
    steps: set[int] = set()
    if not any(one.quantity == OUTSIDE and one.stage == VALIDATION for one in series):
        for one in map(NativeSeries.from_dict, manifest["series"]):
            if one.part.startswith(VALIDATION):
                steps |= native.by_step(one).keys()
    found: Steps = np.array(sorted(steps), dtype=np.int64)
    return found
