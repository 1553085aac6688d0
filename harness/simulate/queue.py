"""Between rollout and trainer: whole groups wait their turn, and limits close admission of new work [12.3.4].

The rules are the reference loop's (adapters/reference/queue.py); a test holds the two to the same decisions. A batch
may also be told by its tokens, which what is in flight is then estimated to have.
"""

from collections import deque
from collections.abc import Callable, Iterable

from harness.simulate.recorder import Recorder
from harness.simulate.records import Group, Sample
from harness.simulate.settings import Settings

TOKEN_BYTES, PROMPT_BYTES = 9, 5
"""Of a response token (id, log-prob, mask) and of a prompt token (id, mask), as the ledger stores them."""
RESTORED = "restored"


class RolloutQueue:
    """First in, first out, by whole groups; single records leave it only by `drop`."""

    def __init__(self, settings: Settings, group_tokens: float, recorder: Recorder) -> None:
        """`group_tokens`: what a group that is in flight is thought to have."""
        self._limits, self._batch, self._group_tokens = settings.queue, settings.batch, group_tokens
        self._lag_bound = 0 if settings.synchronous else settings.lag_bound
        self._recorder = None if settings.synchronous else recorder
        self.groups: deque[Group] = deque()
        self.records = self.tokens = self.bytes = 0
        self.closed: str | None = None

    def __len__(self) -> int:
        return len(self.groups)

    def batches(self, in_flight: int) -> int:
        """Whole batches that wait, with so many groups in flight thought to be put."""
        if self._batch.groups is not None:
            return (len(self.groups) + in_flight) // self._batch.groups
        return int((self.tokens + in_flight * self._group_tokens) // (self._batch.tokens or 1))

    def admits(self, now: float, turn: int, in_flight: int, served: int) -> bool:
        """Whether a new group may be asked for; a change is written.

        Args:
            turn: the policy version at which the trainer will take its next batch.
            in_flight: groups asked for and not put yet.
            served: the policy version that would sample the new group.
        """
        reason = self._forbids(now, turn, in_flight, served)
        if reason != self.closed:
            self.closed = reason
            self._write(now, "open" if reason is None else "close", 0, 0, reason)
        return reason is None

    def put(self, group: Group, now: float) -> None:
        """Take a group in; of what the verifier failed on, nothing waits."""
        kept = group.kept
        group.t_put, group.judged, group.right = now, len(kept), sum(sample.right for sample in kept)
        group.tokens = sum(sample.length for sample in kept)
        group.bytes = group.tokens * TOKEN_BYTES + len(kept) * group.prompt_tokens * PROMPT_BYTES
        group.samples = kept
        self._enter(group, now, None)

    def clear(self) -> None:
        """Forget all that waits; nothing is written, for the process that held it is dead."""
        self.groups.clear()
        self.records = self.tokens = self.bytes = 0
        self.closed = None

    def restore(self, saved: Iterable[tuple[Group, list[Sample]]], now: float) -> None:
        """Put back what a checkpoint kept: each group with the samples that it had then."""
        for group, samples in saved:
            group.samples, group.t_put = list(samples), now
            group.tokens = sum(sample.length for sample in samples)
            group.bytes = group.tokens * TOKEN_BYTES + len(samples) * group.prompt_tokens * PROMPT_BYTES
            self._enter(group, now, RESTORED)

    def get(self, now: float, *, everything: bool = False) -> list[Group] | None:
        """The oldest groups that make a batch (or all that wait, if they do), which leave; None where they do not."""
        number = self._enough()
        if number is None:
            return None
        if everything:
            number = len(self.groups)
        taken = [self.groups.popleft() for _ in range(number)]
        records, tokens = sum(len(group.samples) for group in taken), sum(group.tokens for group in taken)
        self._leave(records, tokens, sum(group.bytes for group in taken))
        self._write(now, "get", records, tokens, None)
        return taken

    def drop(self, why: Callable[[Sample, float], str | None], now: float) -> list[tuple[Sample, str]]:
        """Throw away each record for which `why` (given the seconds that it has waited) has a reason."""
        dropped: list[tuple[Sample, str]] = []
        for group in self.groups:
            gone = [(sample, reason) for sample in group.samples if (reason := why(sample, now - group.t_put))]
            if gone:
                dropped += gone
                lost = {sample for sample, _ in gone}
                group.samples = [sample for sample in group.samples if sample not in lost]
                tokens = sum(sample.length for sample in lost)
                size = tokens * TOKEN_BYTES + len(lost) * group.prompt_tokens * PROMPT_BYTES
                group.tokens, group.bytes = group.tokens - tokens, group.bytes - size
        if dropped:
            touched = {sample.group for sample, _ in dropped}
            self.groups = deque(group for group in self.groups if group.samples or group not in touched)
            self._count_dropped(dropped, now)
        return dropped

    def _count_dropped(self, dropped: Iterable[tuple[Sample, str]], now: float) -> None:
        by_reason: dict[str, list[Sample]] = {}
        for sample, reason in dropped:
            by_reason.setdefault(reason, []).append(sample)
        for reason, samples in sorted(by_reason.items()):
            tokens = sum(sample.length for sample in samples)
            prompts = sum(sample.group.prompt_tokens for sample in samples)
            self._leave(len(samples), tokens, tokens * TOKEN_BYTES + prompts * PROMPT_BYTES)
            self._write(now, "drop", len(samples), tokens, reason)

    def _enter(self, group: Group, now: float, reason: str | None) -> None:
        self.groups.append(group)
        self.records += len(group.samples)
        self.tokens += group.tokens
        self.bytes += group.bytes
        self._write(now, "put", len(group.samples), group.tokens, reason)

    def _leave(self, records: int, tokens: int, size: int) -> None:
        self.records -= records
        self.tokens -= tokens
        self.bytes -= size

    def _enough(self) -> int | None:
        if self._batch.groups is not None:
            return self._batch.groups if len(self.groups) >= self._batch.groups else None
        wanted = self._batch.tokens or 1
        if self.tokens < wanted:
            return None
        held = 0
        for number, group in enumerate(self.groups, start=1):
            held += group.tokens
            if held >= wanted:
                return number
        return None

    def _forbids(self, now: float, turn: int, in_flight: int, served: int) -> str | None:
        ahead = self.batches(in_flight)
        if self._lag_bound is not None and turn - served + ahead * self._batch.updates > self._lag_bound:
            return "lag_bound"
        if ahead < 1:
            return None
        limits = self._limits
        if limits.records is not None and self.records >= limits.records:
            return "records"
        if limits.tokens is not None and self.tokens >= limits.tokens:
            return "tokens"
        if limits.bytes is not None and self.bytes >= limits.bytes:
            return "bytes"
        if limits.age_s is not None and self.groups and now - self.groups[0].t_put >= limits.age_s:
            return "age_s"
        if limits.lag is not None:
            versions = [sample.version for group in self.groups for sample in group.samples]
            if turn - min(versions, default=turn) >= limits.lag:
                return "lag"
        return None

    def _write(self, now: float, event: str, records: int, tokens: int, reason: str | None) -> None:
        if self._recorder is not None:
            self._recorder.queue(now, event, records, tokens, (self.records, self.tokens, self.bytes), reason)
