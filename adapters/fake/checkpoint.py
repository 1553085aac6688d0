"""Checkpoints of the fake loop: what its next step follows from, with a digest of each item [12.5.1]."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

from adapters.fake.truth import Sample, Truth, make_batch
from harness.probe import Probe

State = dict[str, Any]
ITEMS = {"parameters": "weights", "step_and_version": "step", "dataset_cursor": "batch", "queue": "waiting"}
"""Items of step 12.5.1 that a loop without a model has, and where its state holds them."""


def digests(state: State) -> dict[str, str]:
    """The digest of each item of a state."""
    return {item: hashlib.sha256(json.dumps(state[key]).encode()).hexdigest() for item, key in ITEMS.items()}


def save(probe: Probe, state: State) -> None:
    """Write a state whole, and say so in the ledger."""
    started = time.perf_counter_ns()
    path = Path(probe.cell["directory"], "checkpoint.json")
    content = json.dumps(state | {"mark": probe.mark()})
    partial = path.with_suffix(".partial")
    partial.write_text(content, encoding="utf-8")
    partial.replace(path)
    row = {"step": state["step"], "policy_version": state["version"], "bytes": len(content), "ok": True}
    row |= {"items": json.dumps(digests(state)), "path": path.name}
    probe.checkpoint(t_start=started, t_end=time.perf_counter_ns(), **row)
    probe.flush()


def restore(probe: Probe, fresh: State) -> State:
    """The state that an attempt begins with: `fresh` in the first and where nothing was saved, else what was saved, or
    of that the weights alone. Says in the ledger what became of each item."""
    if probe.cell["attempt"] == 0:
        return fresh
    path = Path(probe.cell["directory"], "checkpoint.json")
    if not path.exists():
        probe.resumed(None, None, 0, 0, {})
        return fresh
    saved: State = json.loads(path.read_text(encoding="utf-8"))
    mark = saved.pop("mark")
    weights_only = probe.cell["adapter_options"]["checkpoint"]["restore"] == "weights"
    state = fresh | {"weights": saved["weights"]} if weights_only else saved
    before, after = digests(saved), digests(state)
    restored = {item: _item(before[item], after[item]) for item in ITEMS}
    probe.resumed(None if weights_only else mark, path.name, state["step"], state["version"], restored)
    return state


def waiting_batches(truth: Truth, cell: dict[str, Any], state: State) -> list[list[Sample]]:
    """The batches that wait in a restored queue, made again with the versions that sampled them."""
    return [make_batch(truth, cell["task"], cell["track"], batch, version) for batch, version in state["waiting"]]


def _item(saved: str, found: str) -> dict[str, str]:
    state = "restored" if saved == found else "restarted"
    return {"state": state, "saved": saved, "found": found, "evidence": "digests over checkpoint.json"}
