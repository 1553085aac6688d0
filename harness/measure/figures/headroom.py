"""How near each stage comes to the limits of the machine, measured in the same run [12.2.5; Williams et al. 2009].

The roofline time of some work is the larger of bytes over bandwidth and operations over the matrix rate.
"""

import numpy as np

from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Value
from harness.measure.view import CellView

PASSES = 3
"""Forward, and a backward that costs two; with gradient checkpointing the forward is done again."""


def limit_seconds(view: CellView, moved: float, operations: float) -> float:
    """Roofline time of moving so many bytes and doing so many operations.

    Raises:
        UnmeasuredError: the machine's limits were not measured.
    """
    roofline = view.context.roofline
    if not roofline:
        raise UnmeasuredError("the limits of the machine were not measured in this run")
    by_memory = moved / float(roofline["bandwidth_bytes_per_s"])
    by_matrix = operations / float(roofline["matrix_flops_per_s"])
    return max(by_memory, by_matrix)


def forwards(view: CellView, stage: str) -> int:
    """How often the weights were read in a stage of the window: the sum of its spans' `forwards`.

    Raises:
        UnmeasuredError: a span of the stage does not say.
    """
    numbers, details = view.tables.details
    used, count = np.unique(numbers[view.spans.of(stage).row], return_counts=True)
    said = [details[number].get("forwards") for number in used]
    if any(passes is None for passes in said):
        raise UnmeasuredError(f"spans of {stage} do not say how many forward passes they made")
    return sum(int(passes) * int(spans) for passes, spans in zip(said, count, strict=True))


class Headroom(Measure):
    """Roofline time over the time taken, of one stage."""

    unit = "share"
    direction = "higher"
    topic = "throughput"
    source = "12.2.5"
    stage: str

    def compute(self, view: CellView) -> Value:
        """Limit over achieved."""
        spans = view.spans.of(self.stage)
        if not len(spans):
            absent = view.absent(self.stage)
            return self.none(absent or f"no span of {self.stage} in the window", absent=absent is not None)
        model = view.note("model")
        moved, operations = self.work(view, float(model["bytes"]), float(model["flops_per_token"]))
        return self.ratio(limit_seconds(view, moved, operations), spans.union_seconds(), len(spans))

    def work(self, view: CellView, weight_bytes: float, flops_per_token: float) -> tuple[float, float]:
        """Bytes that must move and operations that must be done in the window."""
        raise NotImplementedError


class Generation(Headroom):
    """Each forward pass reads all weights once; each token costs the model's operations. Attention is left out."""

    def work(self, view: CellView, weight_bytes: float, flops_per_token: float) -> tuple[float, float]:
        """From the tokens that were computed on."""
        return forwards(view, self.stage) * weight_bytes, self.tokens(view) * flops_per_token

    def tokens(self, view: CellView) -> float:
        """Tokens that went through the model."""
        raise NotImplementedError


@figure
class HeadroomPrefill(Generation):
    """Prefill: roofline time over time taken. The limit is the larger of weights read once a forward pass over the
    measured bandwidth and prompt tokens times operations a token over the measured matrix rate."""

    tag, title, stage = "headroom_prefill", "Prefill, share of the roofline", "prefill"
    needs = ("spans.input_tokens", "spans.detail", "manifest.model", "roofline")

    def tokens(self, view: CellView) -> float:
        """Prompt tokens computed."""
        return float(view.spans.of("prefill").input_tokens.sum())


@figure
class HeadroomDecode(Generation):
    """Decode: roofline time over time taken. The limit is the larger of weights read once a forward pass over the
    measured bandwidth and sampled tokens times operations a token over the measured matrix rate."""

    tag, title, stage = "headroom_decode", "Decode, share of the roofline", "decode"
    needs = ("spans.output_tokens", "spans.detail", "manifest.model", "roofline")

    def tokens(self, view: CellView) -> float:
        """Each sampled token is computed on once."""
        return float(view.spans.of("decode").output_tokens.sum())


@figure
class HeadroomTrain(Headroom):
    """Forward and backward: roofline time over time taken. The limit counts three passes (four with gradient
    checkpointing) over all positions that were computed on, padding included, whose share is a figure of its own."""

    tag, title, stage = "headroom_train", "Forward and backward, share of the roofline", "forward_backward"
    needs = ("spans.input_tokens", "spans.policy_tokens", "spans.padded_tokens", "manifest.model", "roofline")

    def work(self, view: CellView, weight_bytes: float, flops_per_token: float) -> tuple[float, float]:
        """Weights are read in every pass of every micro-batch."""
        spans = view.spans.of(self.stage)
        passes = PASSES + bool(view.context.task.get("gradient_checkpointing"))
        tokens = float(spans.input_tokens.sum() + spans.policy_tokens.sum() + spans.padded_tokens.sum())
        micro_batches = view.steps * int(view.context.task["micro_batches"])
        return micro_batches * passes * weight_bytes, tokens * passes * flops_per_token


@figure
class HeadroomSync(Measure):
    """Weight synchronisation: the time that its bytes take at the measured memory bandwidth over the time taken."""

    tag, title, unit, direction = "headroom_sync", "Weight sync, share of the roofline", "share", "higher"
    topic = "throughput"
    source, needs = "12.4.5", ("publications.bytes", "publications.t_start, publications.t_end", "roofline")

    def compute(self, view: CellView) -> Value:
        """Bytes over bandwidth, over time."""
        window = view.window
        rows = view.tables.ledger.table("publications").to_pylist()
        rows = [row for row in rows if window.t_start <= row["t_start"] < window.t_end]
        moved = sum(row["bytes"] for row in rows)
        if not moved:
            return self.none("trainer and engine share the weights: no bytes are moved", absent=True)
        taken = sum(row["t_end"] - row["t_start"] for row in rows) / 1e9
        return self.ratio(limit_seconds(view, float(moved), 0.0), taken, len(rows))
