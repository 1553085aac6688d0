"""Between collectors and trainer of the asynchronous cell: groups wait their turn, and limits close admission of new
work [12.3.4]. Standard library only."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from harness.probe import Probe

ID_BYTES, LOGPROB_BYTES, MASK_BYTES = 4, 4, 1
"""Of a token, as the ledger stores it."""
RESTORED = "restored"
"""Why a group was put that arrived in an earlier attempt."""


@dataclass
class Waiting:
    """A group that waits: it came in at `since` (perf_counter_ns) and goes out whole. Tokens are policy tokens."""

    since: int
    samples: list[Sample]
    tokens: int = field(init=False)
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = sum(sample.completion.policy_tokens for sample in self.samples)
        self.bytes = sum(sample_bytes(sample) for sample in self.samples)


class RolloutQueue:
    """First in, first out, by whole groups; single records leave it only by `drop`. Every move and every change of
    admission is a row of the ledger's `queue` table.

    A limit closes admission of new work only: what is in flight still comes in, so the depth may overshoot the limit by
    as much. No limit but the lag bound closes admission while less than one batch waits or is in flight: the trainer
    would wait for ever.
    """

    def __init__(self, settings: Settings, probe: Probe) -> None:
        self._limits, self._lag_bound = settings.queue, settings.lag_bound
        self._per_batch, self._updates = settings.prompts_per_batch, settings.updates_per_batch
        self._probe = probe
        self._groups: deque[Waiting] = deque()
        self.records = self.tokens = self.bytes = 0
        self.closed: str | None = None

    def __len__(self) -> int:
        """How many groups wait."""
        return len(self._groups)

    @property
    def samples(self) -> list[Sample]:
        """All that waits, in its order."""
        return [sample for group in self._groups for sample in group.samples]

    @property
    def groups(self) -> list[list[Sample]]:
        """The groups that wait, in their order, with their behaviour versions, and those that lost all their samples:
        what a checkpoint keeps."""
        return [group.samples for group in self._groups]

    def admits(self, now: int, policy_version: int, in_flight: int, served: int) -> str | None:
        """None where a new group may be asked for, else the limit that forbids it; a change is written.

        `lag_bound` forbids work that would be further behind than the bound when its turn comes. It holds for every
        record if groups are put in the order in which they were asked for.

        Args:
            now: perf_counter_ns.
            policy_version: at which the trainer will take its next batch, were every update until then applied.
            in_flight: groups asked for and not put yet.
            served: the policy version that would sample the new group.
        """
        reason = self._forbids(now, policy_version, in_flight, served)
        if reason != self.closed:
            self.closed = reason
            self._write(now, "open" if reason is None else "close", 0, 0, reason)
        return reason

    def put(self, group: Sequence[Sample], now: int, reason: str | None = None) -> None:
        """Take a complete group in. A group that lost all its samples keeps its turn in the order of batches."""
        entry = Waiting(now, list(group))
        self._groups.append(entry)
        self._count(entry, 1)
        self._write(now, "put", len(entry.samples), entry.tokens, reason)

    def get(self, groups: int, now: int) -> list[Sample] | None:
        """The samples of the `groups` oldest groups, which leave; None, and nothing leaves, where fewer wait."""
        if len(self._groups) < groups:
            return None
        taken = [self._groups.popleft() for _ in range(groups)]
        for entry in taken:
            self._count(entry, -1)
        samples = [sample for entry in taken for sample in entry.samples]
        self._write(now, "get", len(samples), sum(entry.tokens for entry in taken), None)
        return samples

    def drop(self, why: Callable[[Sample, float], str | None], now: int) -> list[tuple[Sample, str]]:
        """Throw away each record for which `why` gives a reason; the caller writes their fates. The other records of
        its group keep their advantages; a group that loses its last record gives its turn up.

        Args:
            why: of a record and the seconds that it has waited.
        """
        dropped: list[tuple[Sample, str]] = []
        kept: deque[Waiting] = deque()
        for entry in self._groups:
            reasons = [why(sample, (now - entry.since) / 1e9) for sample in entry.samples]
            gone = [(sample, reason) for sample, reason in zip(entry.samples, reasons, strict=True) if reason]
            left = [sample for sample, reason in zip(entry.samples, reasons, strict=True) if not reason]
            dropped += gone
            if left or not gone:
                kept.append(Waiting(entry.since, left) if gone else entry)
        self._groups = kept
        for reason in sorted({reason for _, reason in dropped}):
            lost = Waiting(now, [sample for sample, own in dropped if own == reason])
            self._count(lost, -1)
            self._write(now, "drop", len(lost.samples), lost.tokens, reason)
        return dropped

    def restore(self, groups: Sequence[Sequence[Sample]], now: int) -> None:
        """Put back what a checkpoint kept. The seconds of their age begin again: the clock of the run
        that died is not this one's."""
        for group in groups:
            self.put(group, now, RESTORED)

    def _forbids(self, now: int, policy_version: int, in_flight: int, served: int) -> str | None:
        ahead = len(self._groups) + in_flight
        if policy_version - served + ahead // self._per_batch * self._updates > self._lag_bound:
            return "lag_bound"
        if ahead < self._per_batch:
            return None
        limits = self._limits
        oldest = self._groups[0].since if self._groups else now
        versions = [sample.policy_version for group in self._groups for sample in group.samples]
        behind = policy_version - min(versions, default=policy_version)
        at = {
            "records": (self.records, limits.records),
            "tokens": (self.tokens, limits.tokens),
            "bytes": (self.bytes, limits.bytes),
            "age_s": ((now - oldest) / 1e9, limits.age_s),
            "lag": (behind, limits.lag),
        }
        return next((name for name, (depth, most) in at.items() if most is not None and depth >= most), None)

    def _count(self, entry: Waiting, sign: int) -> None:
        self.records += sign * len(entry.samples)
        self.tokens += sign * entry.tokens
        self.bytes += sign * entry.bytes

    def _write(self, now: int, event: str, records: int, tokens: int, reason: str | None) -> None:
        self._probe.queue(
            t=now,
            event=event,
            records=records,
            tokens=tokens,
            depth_records=self.records,
            depth_tokens=self.tokens,
            depth_bytes=self.bytes,
            reason=reason,
        )


def sample_bytes(sample: Sample) -> int:
    """What a record takes: ids, log-probs and mask at the ledger's widths, and its text."""
    prompt, tokens = len(sample.prompt.token_ids), len(sample.completion.tokens)
    text = len(sample.text.encode("utf-8"))
    return prompt * (ID_BYTES + MASK_BYTES) + tokens * (ID_BYTES + LOGPROB_BYTES + MASK_BYTES) + text
