"""How much memory, in which phase, and how much of it a first budget explains [12.2.1 - 12.2.4]."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.spans import Spans
from harness.measure.values import Value
from harness.measure.view import CellView
from harness.theory.memory import PROFILES, kv_bytes, state_bytes

PHASES: dict[str, tuple[str, ...]] = {
    "startup": ("startup", "restore"),
    "rollout": ("prompt_prep", "queue_wait", "prefill", "decode", "generate", "verifier"),
    "transition": ("batch_assembly", "observation"),
    "training": ("logprob_recompute", "forward_backward", "optimizer_step"),
    "synchronisation": ("weight_sync",),
    "checkpoint": ("checkpoint",),
}
"""The phases of step 12.2.4 and the stages in each; between stages of the loop it is `transition`."""
_PHASE_OF = {stage: phase for phase, stages in PHASES.items() for stage in stages}
HOST_SOURCES = ("pss", "rss")


LOOK_BACK = 64
"""How many of the spans that began before a sample may still run: more than there are processes."""


def stages_at(spans: Spans, times: Array) -> list[str | None]:
    """For each time, the stage of the span that runs then and began last, or None."""
    order = np.argsort(spans.t_start, kind="stable")
    begins, ends, stages = spans.t_start[order], spans.t_end[order], spans.stage[order]
    out: list[str | None] = []
    for t in times:
        last = int(np.searchsorted(begins, t, side="right"))
        running = np.flatnonzero(ends[max(0, last - LOOK_BACK) : last] >= t)
        found = max(0, last - LOOK_BACK) + int(running[-1]) if len(running) else None
        out.append(None if found is None else spans.names["stage"][int(stages[found])])
    return out


def memory_samples(view: CellView) -> Iterator[tuple[dict[str, Any], str]]:
    """Every sample of the run with its phase; one that does not say its stage has that of the running span."""
    spans = view.tables.spans
    first = int(spans.t_start[~spans.is_in(*PHASES["startup"])].min(initial=2**62))
    rows = view.tables.ledger.table("memory").to_pylist()
    running = stages_at(spans, np.array([row["t"] for row in rows], dtype=np.int64))
    for row, seen in zip(rows, running, strict=True):
        stage = row["phase"] or seen
        between = "startup" if row["t"] < first else "transition"
        yield row, _PHASE_OF[stage] if stage else between


def host_peaks(view: CellView) -> dict[str, tuple[int, int]]:
    """By phase: the largest sample of host memory, in bytes, and the number of samples.

    Raises:
        UnmeasuredError: memory was not sampled.
    """
    peaks: dict[str, tuple[int, int]] = {}
    for row, phase in memory_samples(view):
        if row["source"] in HOST_SOURCES:
            largest, count = peaks.get(phase, (0, 0))
            peaks[phase] = max(largest, row["bytes"]), count + 1
    if not peaks:
        raise UnmeasuredError("memory was not sampled")
    return peaks


@figure
class MemoryPeak(Measure):
    """Largest sampled host memory of the cell's processes in the whole run, B_peak = max_t B(t), and in each phase. PSS
    (proportional set size) of the process tree or of the process that does the work."""

    tag, title, unit, direction = "memory_peak_bytes", "Peak memory of the host", "bytes", "lower"
    topic = "memory"
    source, needs = "12.2.4", ("memory.bytes", "memory.phase", "memory.source")
    variants = "phase"

    def compute(self, view: CellView) -> list[Value]:
        """Over all, then phase by phase."""
        peaks = host_peaks(view)
        whole = self.value(float(max(p for p, _ in peaks.values())), sum(n for _, n in peaks.values()))
        return [whole, *(self._phase(view, phase, peaks) for phase in PHASES)]

    def _phase(self, view: CellView, phase: str, peaks: dict[str, tuple[int, int]]) -> Value:
        if phase in peaks:
            return self.value(float(peaks[phase][0]), peaks[phase][1], variant=phase)
        reasons = [view.absent(stage) for stage in PHASES[phase]]
        if all(reasons):
            return self.none(str(reasons[0]), variant=phase, absent=True)
        return self.none("no sample fell in this phase", variant=phase)


@figure
class DeviceMemoryPeak(Measure):
    """Largest sampled memory of an accelerator in the whole run, by what says so: the allocator (allocated, reserved)
    or the driver. A preallocating engine's peak is a setting, not a need."""

    tag, title, unit, direction = "device_memory_peak_bytes", "Peak memory of the device", "bytes", "lower"
    topic = "memory"
    source, needs = "12.2.4", ("memory.bytes", "memory.source")
    variants = "source"

    def compute(self, view: CellView) -> list[Value]:
        """One value a source."""
        peaks: dict[str, tuple[int, int]] = {}
        for row, _ in memory_samples(view):
            if row["source"] not in HOST_SOURCES:
                largest, count = peaks.get(row["source"], (0, 0))
                peaks[row["source"]] = max(largest, row["bytes"]), count + 1
        if not peaks:
            raise UnmeasuredError("no accelerator was sampled")
        return [self.value(float(top), n, variant=source) for source, (top, n) in sorted(peaks.items())]


def bytes_per_weight(view: CellView) -> float:
    """Of the stored weights; from the note `model`."""
    model = view.note("model")
    return float(model["bytes"]) / float(model["parameters"])


def predicted_state(view: CellView) -> tuple[str, float]:
    """The profile that fits the stored weights, and `B_state` of AdamW in it."""
    profile = "adamw_float32" if bytes_per_weight(view) >= 4 else "adamw_bf16_no_master"
    model = view.note("model")
    return profile, state_bytes(PROFILES[profile], int(model["parameters"]), int(model["trainable"]))


def predicted_kv(view: CellView) -> float:
    """`B_KV` of the generated batch with the most prompt and response tokens, all of them retained at once."""
    model, rollouts = view.note("model"), view.tables.rollouts
    missing = [key for key in ("layers", "kv_heads", "head_dim") if key not in model]
    if missing:
        raise UnmeasuredError(f"the note `model` does not say {', '.join(missing)}")
    if not len(rollouts):
        raise UnmeasuredError("there are no rollouts")
    retained = np.bincount(rollouts.trace, weights=rollouts.prompt_tokens + rollouts.response_tokens)
    return kv_bytes(model["layers"], model["kv_heads"], model["head_dim"], int(retained.max()), bytes_per_weight(view))


@figure
class MemoryPredicted(Measure):
    """First lines of a budget: model state B_state = N (param + grad + m1 + m2 + master) of AdamW, and the KV cache
    B_KV = 2 L H_kv d_h N_tok b of the largest generated batch. Approximate: activations, logits, workspaces and the
    runtime are in neither."""

    tag, title, unit, direction = "memory_predicted_bytes", "Predicted memory", "bytes", "none"
    topic = "memory"
    source, needs = "12.2.1, 12.2.3", ("manifest.model", "rollouts.policy_mask")
    variants = "part"

    def compute(self, view: CellView) -> list[Value]:
        """State and cache."""
        profile, state = predicted_state(view)
        evidence = f"{self.evidence}; profile {profile}"
        out = [self.value(state, 1, variant="model_state", evidence=evidence)]
        try:
            return [*out, self.value(predicted_kv(view), len(view.tables.rollouts), variant="kv_cache")]
        except UnmeasuredError as error:
            return [*out, self.none(str(error), variant="kv_cache")]


@figure
class MemoryUnexplained(Measure):
    """Peak host memory less the predicted model state and KV cache: activations, logits, workspaces, runtime, and what
    the prediction has wrong."""

    tag, title, unit, direction = "memory_unexplained_bytes", "Memory not explained", "bytes", "none"
    topic = "memory"
    source, needs = "12.2.4", ("memory.bytes", "manifest.model", "rollouts.policy_mask")

    def compute(self, view: CellView) -> Value:
        """Measured less predicted."""
        peaks = host_peaks(view)
        predicted = predicted_state(view)[1] + predicted_kv(view)
        return self.value(max(p for p, _ in peaks.values()) - predicted, sum(n for _, n in peaks.values()))
