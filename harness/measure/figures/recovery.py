"""What keeping and restoring state costs, and what a death took [12.5.1, 12.5.2, 12.5.3]."""

from collections import Counter
from itertools import pairwise
from pathlib import PurePath
from typing import ClassVar

import numpy as np

from harness.contract import PROCESS_DIED, ROLLOUTS_LOST
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.restarts import (
    Resume,
    checkpoints_of,
    deaths_of,
    faults_of,
    some_checkpoints,
    some_resumes,
    stage_seconds,
)
from harness.measure.values import Direction, Value
from harness.measure.view import CellView
from harness.theory.checkpoint import best_interval, checkpoint_overhead

STATES = ("restored", "restarted", "lost")


class RecoveryMeasure(Measure):
    """A figure of checkpoints, deaths and restarts; over the whole run, whatever the warm-up."""

    topic = "recovery"
    direction: ClassVar[Direction] = "none"
    source = "12.5.3"


@figure
class CheckpointSeconds(RecoveryMeasure):
    """Median seconds that writing a checkpoint takes, from its begin until it is whole on disk: C of the model of step
    12.5.1. Of one that is written in the background only a part is on the critical path."""

    tag, title, unit, direction = "checkpoint_seconds", "Checkpoint, time to write", "s", "lower"
    source, needs = "12.5.1", ("checkpoints.t_start", "checkpoints.t_end", "checkpoints.ok")

    def compute(self, view: CellView) -> Value:
        """Of those that were written whole."""
        seconds = write_seconds(view)
        return self.value(float(np.median(seconds)), len(seconds))


def write_seconds(view: CellView) -> list[float]:
    """Seconds that each whole checkpoint took.

    Raises:
        UnmeasuredError: there is none.
    """
    return [(row["t_end"] - row["t_start"]) / 1e9 for row in some_checkpoints(view.tables.ledger)]


@figure
class CheckpointBytes(RecoveryMeasure):
    """Median bytes of a checkpoint that was written whole."""

    tag, title, unit, direction = "checkpoint_bytes", "Checkpoint, size", "bytes", "lower"
    source, needs = "12.5.1", ("checkpoints.bytes", "checkpoints.ok")

    def compute(self, view: CellView) -> Value:
        """Of all attempts."""
        sizes = [row["bytes"] for row in some_checkpoints(view.tables.ledger)]
        return self.value(float(np.median(sizes)), len(sizes))


@figure
class CheckpointFailures(RecoveryMeasure):
    """Checkpoints that could not be written whole (a full disk, a death while writing leaves no row)."""

    tag, title, unit, direction = "checkpoint_failures", "Checkpoints that failed", "checkpoints", "lower"
    source, needs = "12.5.1", ("checkpoints.ok",)

    def compute(self, view: CellView) -> Value:
        """Of all attempts."""
        rows = view.tables.ledger.table("checkpoints", ["ok"])["ok"].to_pylist()
        if not rows:
            raise UnmeasuredError("no checkpoint was begun")
        return self.value(float(rows.count(False)), len(rows))


@figure
class CheckpointInterval(RecoveryMeasure):
    """Median seconds between the ends of two successive checkpoints of one attempt: I of the model of step 12.5.1."""

    tag, title, unit = "checkpoint_interval_seconds", "Checkpoint interval", "s"
    source, needs = "12.5.1", ("checkpoints.t_end", "checkpoints.process")

    def compute(self, view: CellView) -> Value:
        """Of those that were written whole."""
        gaps = intervals(view)
        return self.value(float(np.median(gaps)), len(gaps))


def intervals(view: CellView) -> list[float]:
    """Seconds between successive whole checkpoints of one attempt.

    Raises:
        UnmeasuredError: there are no two of one attempt.
    """
    pairs = pairwise(some_checkpoints(view.tables.ledger))
    gaps = [
        (after["t_end"] - before["t_end"]) / 1e9 for before, after in pairs if before["process"] == after["process"]
    ]
    if not gaps:
        raise UnmeasuredError("no attempt wrote two checkpoints, so there is no interval")
    return gaps


def declared_failures(view: CellView) -> float:
    """M, mean seconds between failures.

    Raises:
        UnmeasuredError: it is not declared.
    """
    if view.context.between_failures is None:
        raise UnmeasuredError("how often failures come is not declared (adapter.checkpoint.mtbf_s=...)")
    return view.context.between_failures


@figure
class CheckpointOverhead(RecoveryMeasure):
    """H(I) = C/I + I/(2M): the share of the time that writing checkpoints and losing work take, with C and I measured
    and M as declared. An orientation: it knows no restart cost and no correlated failures."""

    tag, title, unit, direction = "checkpoint_overhead", "Checkpoint overhead, H(I)", "share", "lower"
    source, needs = "12.5.1", ("checkpoints.t_start", "checkpoints.t_end", "checkpoint.mtbf_s")

    def compute(self, view: CellView) -> Value:
        """By the medians of C and I."""
        between = declared_failures(view)
        writes, gaps = write_seconds(view), intervals(view)
        return self.value(checkpoint_overhead(float(np.median(gaps)), float(np.median(writes)), between), len(gaps))


@figure
class CheckpointBestInterval(RecoveryMeasure):
    """I* = sqrt(2 C M): the interval at which H(I) is least, with C measured and M as declared."""

    tag, title, unit = "checkpoint_best_interval_seconds", "Checkpoint interval, best", "s"
    source, needs = "12.5.1", ("checkpoints.t_start", "checkpoints.t_end", "checkpoint.mtbf_s")

    def compute(self, view: CellView) -> Value:
        """By the median of C."""
        between = declared_failures(view)
        writes = write_seconds(view)
        return self.value(best_interval(float(np.median(writes)), between), len(writes))


@figure
class CheckpointAge(RecoveryMeasure):
    """Age of the newest whole checkpoint when an attempt died, the largest over all deaths: the work that is lost.
    Where there was no checkpoint, all of the attempt's time."""

    tag, title, unit, direction = "checkpoint_age_at_death_seconds", "Checkpoint age at a death", "s", "lower"
    source, needs = "12.5.2", ("checkpoints.t_end", "manifest.attempt")

    def compute(self, view: CellView) -> Value:
        """Over the attempts that another one followed."""
        ends = [row["t_end"] for row in checkpoints_of(view.tables.ledger)]
        deaths = deaths_of(view.tables.ledger).values()
        ages = [(died - max([start, *(t for t in ends if t <= died)])) / 1e9 for start, died in deaths]
        if not ages:
            raise UnmeasuredError("no attempt at this cell died")
        return self.value(max(ages), len(ages))


@figure
class Restarts(RecoveryMeasure):
    """How often the cell was started again after it died."""

    tag, title, unit, direction = "restarts", "Restarts", "restarts", "lower"
    needs = ("manifest.attempt",)

    def compute(self, view: CellView) -> Value:
        """All of them."""
        return self.value(float(view.tables.ledger.attempt), view.tables.ledger.attempt + 1)


@figure
class ProcessesReplaced(RecoveryMeasure):
    """Processes that died and were replaced while the run went on."""

    tag, title, unit, direction = "processes_replaced", "Processes replaced", "processes", "lower"
    needs = ("faults.kind",)

    def compute(self, view: CellView) -> Value:
        """All of them."""
        found = faults_of(view.tables.ledger, PROCESS_DIED)
        return self.value(float(len(found)), len(found))


@figure
class ResumedItems(RecoveryMeasure):
    """Items of a checkpoint (step 12.5.1) that the restarts found restored, restarted or lost, by what the resuming
    process said of each. An item whose digest is not the one that was saved does not count as restored."""

    tag, title, unit = "resumed_items", "Items at a restart", "items"
    needs, variants = ("manifest.resumed",), "what became of them"

    def compute(self, view: CellView) -> list[Value]:
        """One of each state, over all restarts."""
        items = [item for resume in some_resumes(view.tables.ledger) for item in resume.items.values()]
        if not items:
            raise UnmeasuredError("there was no checkpoint to restore from")
        counts = Counter(state_of(item) for item in items)
        return [self.value(float(counts[state]), len(items), variant=state) for state in STATES]


def state_of(item: dict[str, str]) -> str:
    """What became of an item; one that says restored with another digest than the saved one was restarted."""
    cold = item["state"] == "restored" and item["saved"] != item["found"]
    return "restarted" if cold else item["state"]


@figure
class VersionGap(RecoveryMeasure):
    """Policy versions between the one that a restart goes on from and the one that the checkpoint holds, or the last
    one that the kept history left, whichever is further; the largest over all restarts. 0 is continuous."""

    tag, title, unit, direction = "policy_version_gap", "Policy version gap at a restart", "updates", "lower"
    needs = ("manifest.resumed", "updates.policy_version_after", "checkpoints.policy_version")

    def compute(self, view: CellView) -> Value:
        """Both directions count alike."""
        found = some_resumes(view.tables.ledger)
        return self.value(float(max(version_gap(view, resume) for resume in found)), len(found))


def version_gap(view: CellView, resume: Resume) -> int:
    """That of one restart."""
    updates = view.tables.updates
    expected = {int(updates["policy_version_after"][updates["step"] < resume.step].max(initial=0))}
    if resume.checkpoint is not None:
        name = PurePath(resume.checkpoint).name
        saved = [c for c in checkpoints_of(view.tables.ledger) if PurePath(c["path"]).name == name]
        expected |= {int(c["policy_version"]) for c in [c for c in saved if c["t_end"] <= resume.t][-1:]}
    return max(abs(resume.policy_version - version) for version in expected)


class LostRows(RecoveryMeasure):
    """Rows that restarts took back."""

    direction: ClassVar[Direction] = "lower"
    table: ClassVar[str]

    def compute(self, view: CellView) -> Value:
        """Of all restarts."""
        some_resumes(view.tables.ledger)
        rows = view.tables.ledger.table(self.table, ["process"]).num_rows
        return self.value(float(rows), rows)


@figure
class RolloutsLost(LostRows):
    """Rollouts that were in the ledger and that restarts took back: they came after the checkpoint and had to be made
    again, or not at all."""

    tag, title, unit, table = "rollouts_lost", "Rollouts taken back", "rollouts", "lost_rollouts"
    needs = ("lost_rollouts.sample_id",)


@figure
class UpdatesLost(LostRows):
    """Optimizer steps that were in the ledger and that restarts took back: they came after the checkpoint and had to be
    made again. One that the process had not written down yet when it died is not counted."""

    tag, title, unit, table = "updates_lost", "Optimizer steps taken back", "steps", "lost_updates"
    needs = ("lost_updates.step",)


@figure
class GenerationsLost(RecoveryMeasure):
    """Generations whose rollouts never arrived, because the process that made them died."""

    tag, title, unit, direction = "generations_lost", "Generations that never arrived", "generations", "lower"
    needs = ("faults.kind", "faults.where")

    def compute(self, view: CellView) -> Value:
        """By the faults that declare them."""
        found = {row["where"] for row in faults_of(view.tables.ledger, ROLLOUTS_LOST)}
        return self.value(float(len(found)), len(found))


@figure
class RestoreSeconds(RecoveryMeasure):
    """Median seconds that restoring a checkpoint takes."""

    tag, title, unit, direction = "restore_seconds", "Restore, time", "s", "lower"
    needs = ("spans.stage", "spans.t_start", "spans.t_end")

    def compute(self, view: CellView) -> Value:
        """By the spans of that stage."""
        seconds = stage_seconds(view.tables.ledger, "restore")
        if not seconds:
            absent = view.notes.get("absent_stages", {}).get("restore")
            raise UnmeasuredError(str(absent) if absent else "nothing was restored")
        return self.value(float(np.median(seconds)), len(seconds))


@figure
class FirstGoodStep(RecoveryMeasure):
    """Seconds from a death to the end of the first applied optimizer step with a finite loss after it, the largest over
    all restarts: start-up, restore and the control batch included."""

    tag, title, unit, direction = "first_good_step_seconds", "Death to first good step", "s", "lower"
    needs = ("manifest.attempt", "updates.t_end", "updates.loss", "updates.applied")

    def compute(self, view: CellView) -> Value:
        """A step that a later restart took back does not count."""
        found, updates = some_resumes(view.tables.ledger), view.tables.updates
        deaths = deaths_of(view.tables.ledger)
        good = updates["t_end"][(updates["applied"] == 1) & np.isfinite(updates["loss"])]
        seconds = []
        for resume in found:
            later = good[good > resume.t]
            if resume.attempt - 1 not in deaths or not len(later):
                raise UnmeasuredError("no optimizer step with a finite loss followed the restart")
            seconds.append((int(later.min()) - deaths[resume.attempt - 1][1]) / 1e9)
        return self.value(max(seconds), len(seconds))
