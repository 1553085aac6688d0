"""Writes a checkpoint whose contents are decided: the trainer's files, the controller's, and the commit of both, in the
loop's own time or behind it. Standard library only."""

import json
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from adapters.reference.checkpoint import CheckpointStore, TrainerPart, digest_of, write_file, write_json
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.probe.faults import Faults

STATE, QUEUE = "state.json", "queue.jsonl"
POLL_SECONDS = 0.02


class KeptTrainer(Protocol):
    """The trainer's part of a checkpoint: `trainer_state.TrainerState` in this process, or ranks elsewhere."""

    def save(self, folder: str, background: bool) -> None:
        """Write the trainer's files into a folder, or copy its state and begin to."""
        ...

    def saved(self) -> TrainerPart | None:
        """What was written; None while it is not all on disk. Raises OSError or SystemFailure if it cannot be."""
        ...

    def committed(self) -> None:
        """The checkpoint is whole."""
        ...

    def load(self, folder: str, which: str) -> TrainerPart:
        """Take over what is in a folder: `full`, or `weights` alone; returns what is held then."""
        ...


@dataclass(frozen=True)
class Draft:
    """A checkpoint to be written: copies, which the loop changes no more.

    Attributes:
        items: what the controller holds, by item.
        lines: the waiting samples, see `sample_lines`.
        facts: what the manifest says beside the items' digests.
    """

    step: int
    policy_version: int
    items: Mapping[str, Any]
    lines: str
    facts: Mapping[str, Any]
    t_start: int = field(default_factory=time.perf_counter_ns)


class CheckpointWriter:
    """Writes drafts, one after another. One that cannot be written is a fault and a row that says so; the checkpoint
    before it stays, and the run goes on."""

    def __init__(
        self, store: CheckpointStore, trainer: KeptTrainer, faults: Faults, probe: Probe, background: bool
    ) -> None:
        self._store, self._trainer, self._faults, self._probe = store, trainer, faults, probe
        self._background = background
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keeper")
        self._writing: Future[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether one is being written."""
        return self._writing is not None and not self._writing.done()

    def write(self, draft: Draft) -> None:
        """Write a draft once the one before is written; in the background, return when the trainer has copied its
        state."""
        self.wait()
        try:
            partial = self._store.begin(draft.step)
            self._trainer.save(str(partial), self._background)
        except (OSError, SystemFailure) as error:
            self._give_up(draft, error)
            return
        self._writing = self._thread.submit(self._finish, draft, partial)
        if not self._background:
            self.wait()

    def wait(self) -> None:
        """Wait until what was begun is written or given up. Raises ActorLost where the trainer died right after."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _finish(self, draft: Draft, partial: Path) -> None:
        try:
            while (part := self._trainer.saved()) is None:
                time.sleep(POLL_SECONDS)
            self._commit(draft, partial, part)
        except (OSError, SystemFailure) as error:
            self._give_up(draft, error)
            return
        self._trainer.committed()

    def _commit(self, draft: Draft, partial: Path, part: TrainerPart) -> None:
        own = {
            STATE: write_json(partial / STATE, draft.items, self._faults),
            QUEUE: write_file(partial / QUEUE, [draft.lines.encode()], self._faults),
        }
        items = digests(draft.items, draft.lines) | part.items
        files = part.files | own
        checkpoint = self._store.commit(partial, files, {**draft.facts, "items": items})
        self._write_row(draft, f"checkpoints/{checkpoint.path.name}", sum(file.bytes for file in files.values()), items)

    def _give_up(self, draft: Draft, error: Exception) -> None:
        self._store.clear()
        name = f"checkpoints/step-{draft.step}"
        self._probe.fault("checkpoint_failed", "system", name, f"{type(error).__name__}: {error}")
        self._write_row(draft, name, 0, {})

    def _write_row(self, draft: Draft, path: str, size: int, items: Mapping[str, str]) -> None:
        self._probe.checkpoint(
            step=draft.step,
            policy_version=draft.policy_version,
            t_start=draft.t_start,
            t_end=time.perf_counter_ns(),
            bytes=size,
            path=path,
            items=json.dumps(items),
            ok=bool(items),
        )
        self._probe.flush()


def digests(items: Mapping[str, Any], lines: str) -> dict[str, str]:
    """The digest of each item that the controller holds."""
    return {name: digest_of(content) for name, content in items.items()} | {"queue": digest_of(lines)}
