"""What a failure cost: work that a restart took back, and work that never arrived [12.5.3]."""

from collections.abc import Collection

import numpy as np

from harness.contract import ROLLOUTS_LOST
from harness.contract.attempts import split_name
from harness.measure.columns import by_run, codes, flat_numbers, lengths, pieces
from harness.measure.measure import Measure, figure
from harness.measure.spans import GENERATING
from harness.measure.values import Value
from harness.measure.view import CellView


def taken_back(view: CellView) -> int:
    """Policy tokens of the completions that a restart took back."""
    path, total = view.tables.ledger.path("lost_rollouts"), 0
    for piece in pieces(path, ["policy_mask"], "policy_mask"):
        mask = flat_numbers(piece["policy_mask"], np.int64)
        total += int(by_run(np.add, mask, lengths(piece["policy_mask"]), 0).sum())
    return total


def lost_traces(view: CellView) -> tuple[set[str], set[str]]:
    """The generations of the whole run that a restart took back, and those of which no completion is in the ledger and
    that a fault or a later attempt declares lost."""
    tables = view.tables
    faults = tables.ledger.table("faults", ["kind", "where"]).to_pylist()
    declared = {fault["where"] for fault in faults if fault["kind"] == ROLLOUTS_LOST}
    _, taken = codes(tables.ledger.path("lost_rollouts"), "trace_id")
    spans, last = tables.spans.of(*GENERATING), tables.ledger.attempt
    pairs = set(zip(spans.trace_id.tolist(), spans.process.tolist(), strict=True))
    names, processes = spans.names["trace_id"], spans.names["process"]
    died = {names[trace] for trace, process in pairs if split_name(processes[process])[1] < last}
    return set(taken), (declared | died) - set(taken) - set(tables.rollouts.traces)


def generated_by(view: CellView, traces: Collection[str]) -> int:
    """Tokens that the generating spans of these batches sampled in the whole run."""
    spans = view.tables.spans.of(*GENERATING)
    chosen = np.array([name in traces for name in spans.names["trace_id"]], dtype=bool)
    return int(spans.output_tokens[chosen[spans.trace_id]].sum()) if len(spans) else 0


def never_arrived(view: CellView) -> int:
    """Tokens of generations that never arrived."""
    return generated_by(view, lost_traces(view)[1])


@figure
class LostTokens(Measure):
    """Tokens of the whole run that were sampled and lost: taken back by a restart, or never arrived because a process
    died while it held them."""

    tag, title, unit, direction = "lost_tokens", "Tokens lost", "tokens", "lower"
    topic, source = "recovery", "12.5.3"
    needs = ("lost_rollouts.policy_mask", "faults.kind, faults.where", "spans.trace_id, spans.output_tokens")
    variants = "how"

    def compute(self, view: CellView) -> list[Value]:
        """All, then by how."""
        parts = {"taken back": taken_back(view), "never arrived": never_arrived(view)}
        made = int(view.tables.spans.of(*GENERATING).output_tokens.sum())
        found = [self.value(float(sum(parts.values())), made)]
        return found + [self.value(float(tokens), made, variant=how) for how, tokens in parts.items()]
