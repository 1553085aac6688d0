"""What a framework's own keys mean: one map a framework, from `adapters/<name>/keys.yaml` and its self-report.

An entry holds for the versions from `since` up to and without `until`, says unit and scope, and names the figure of
ours that it is, or that it only resembles, with the reason why they differ.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

from harness.contract.schema import STAGES
from harness.errors import HarnessBug
from harness.execute.adapter import find_adapter, find_adapters
from harness.ingest.reading import UNKNOWN

KEYS_FILE = "keys.yaml"
SHARED = Path(__file__).with_name("shared_keys.yaml")
"""Keys that belong to a format or to our own count of it, whichever framework wrote it."""
COMMON = frozenset(
    {"epoch", "step", "time", "loss", "grad_norm", "learning_rate", "lr", "entropy", "kl"}
    | {"reward", "reward_std", "return"}
)
"""Keys that any trainer may write: one map alone has them only because the others' frameworks name them otherwise."""
SCOPES = ("run", "device", "process", "rank 0", "engine", "mean of ranks", "mean of processes", "mean of micro-batches")
"""What a number speaks of: all of the run, one device, one process, one engine, or a mean that hides its parts."""
STAGE_SECONDS = "stage_seconds"
REDUCTIONS = ("value", "mean", "sum", "last", "largest", "smallest", "cumulative", "running mean")
"""What a number is of the samples or steps that it covers."""


@dataclass(frozen=True)
class KeyMeaning:
    """One entry of a key map.

    Attributes:
        key: the native key; `*` stands for any characters.
        since, until: the versions that it holds for; None: from the first, to the last.
        mode: what the log has to show of its run for this entry to hold (a block's word `mode`: `sync`, `async`); None:
            nothing.
        unit, scope, of: what the number is (`SCOPES`, `REDUCTIONS`).
        quantity: the name by which the audit's rules know it (`harness.audit.quantities`); None: no rule asks for it.
        measure: the tag of a figure of ours; None: no figure of ours is its like.
        same: whether it is that figure, or only alike in name; then `differs_because` says why.
        our_stage: of seconds of a stage, our stage that they are nearest to (`harness.contract.schema.STAGES`), for
            `plan what-if`: which side of a loop is busy then.
        source, date: what says so, and when that was read.
    """

    key: str
    unit: str
    scope: str
    of: str
    quantity: str | None
    measure: str | None
    same: bool
    differs_because: str | None
    source: str
    date: str
    since: str | None = None
    until: str | None = None
    part: str | None = None
    mode: str | None = None
    our_stage: str | None = None

    def holds_for(self, version: str | None, mode: str | None) -> bool:
        """Whether it holds for that version and mode. For a version that is not known, every entry may; for a mode that
        is not known, only those that ask for none, since a key that means two things then means neither."""
        if self.mode is not None and self.mode != mode:
            return False
        if version is None:
            return True
        try:
            at = Version(version)
        except InvalidVersion:
            return True
        return (self.since is None or Version(self.since) <= at) and (self.until is None or at < Version(self.until))


@dataclass(frozen=True)
class KeyMap:
    """The map of one framework."""

    framework: str
    entries: tuple[KeyMeaning, ...]
    _plain: dict[str, list[KeyMeaning]] = field(init=False, repr=False, default_factory=dict)
    _globs: list[tuple[re.Pattern[str], KeyMeaning]] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        """Sort exact keys from patterns, so that a look-up is one dictionary access for most."""
        for entry in self.entries:
            if "*" in entry.key:
                self._globs.append((re.compile(translate(entry.key)), entry))
            else:
                self._plain.setdefault(entry.key, []).append(entry)

    def meaning(self, key: str, version: str | None = None, mode: str | None = None) -> KeyMeaning | None:
        """What a key means in a version and a mode: an exact entry before a pattern, one for the mode before one for
        any, a later before an earlier; or None. Where the version is not known, an entry that is not our figure goes
        before one that is: in some of the versions that it may be, the key is not."""
        found = [entry for entry in self._plain.get(key, ()) if entry.holds_for(version, mode)]
        found = found or [e for pattern, e in self._globs if pattern.match(key) and e.holds_for(version, mode)]
        if not found:
            return None
        return max(found, key=lambda e: (e.mode is not None, version is None and not e.same, Version(e.since or "0")))

    def narrowed(self, keys: Iterable[str]) -> "KeyMap":
        """The map without the entries of versions that cannot have written all of these keys together; for a log that
        does not tell its version. The whole map, where no version can have: then somebody added keys of his own."""
        found = [self._plain[key] for key in keys if key in self._plain]
        since = max((min(Version(entry.since or "0") for entry in entries) for entries in found), default=Version("0"))
        ends = [[entry.until for entry in entries] for entries in found]
        until = min((max(map(Version, filter(None, end))) for end in ends if None not in end), default=None)
        if until is not None and until <= since:
            return self
        kept = (e for e in self.entries if e.until is None or Version(e.until) > since)
        return KeyMap(self.framework, tuple(e for e in kept if until is None or Version(e.since or "0") < until))

    def knows(self, key: str, *, by_pattern: bool = False) -> bool:
        """Whether it has the key as it stands; or, `by_pattern`, one that fits it."""
        return any(pattern.match(key) for pattern, _ in self._globs) if by_pattern else key in self._plain


@cache
def key_map(framework: str) -> KeyMap:
    """The map of a framework, from the folder of its adapter, and after it the keys that all share. `UNKNOWN` has the
    shared ones alone.

    Raises:
        HarnessBug: an entry that lacks something or says an unknown unit of meaning: which, and what.
    """
    own = () if framework == UNKNOWN else _entries(framework, find_adapter(framework).folder / KEYS_FILE)
    return KeyMap(framework, (*own, *_entries(SHARED.parent.name, SHARED)))


def framework_of(keys: Iterable[str]) -> str | None:
    """Whose keys these are: the framework that alone knows the most of them; None where no key, or a tie, tells.

    A key that one map has as it stands is not another's whose pattern fits it too; one that all share, or that
    anybody may write, tells nothing.
    """
    shared = key_map(UNKNOWN)
    maps = [key_map(name) for name, adapter in find_adapters().items() if (adapter.folder / KEYS_FILE).exists()]
    alone: Counter[str] = Counter()
    for key in keys:
        if key in COMMON or shared.meaning(key):
            continue
        exact = [known.framework for known in maps if known.knows(key)]
        owners = exact or [known.framework for known in maps if known.knows(key, by_pattern=True)]
        if len(owners) == 1:
            alone[owners[0]] += 1
    (first, most), (_, next_most) = [*alone.most_common(2), ("", 0), ("", 0)][:2]
    return first if most > next_most else None


def _entries(name: str, path: Path) -> tuple[KeyMeaning, ...]:
    if not path.exists():
        return ()
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(
        _entry(name, content, raw | {"key": prefix + raw["key"]} if prefix else raw)
        for prefix in ("", *content.get("also_below", ()))
        for raw in content["keys"]
    )


def _entry(name: str, content: dict[str, Any], raw: dict[str, Any]) -> KeyMeaning:
    """An entry; `source` and `date` of the file hold where it gives none."""
    told = {"source": content.get("source"), "date": content.get("date"), **raw}
    where = f"{name}/{KEYS_FILE}, key {raw.get('key', '?')!r}"
    try:
        entry = KeyMeaning(
            key=told["key"],
            unit=told["unit"],
            scope=told.get("scope", "run"),
            of=told.get("of", "value"),
            quantity=told.get("quantity"),
            part=told.get("part"),
            measure=told.get("measure"),
            same=bool(told.get("same", False)),
            differs_because=told.get("differs_because"),
            source=told["source"] or "",
            date=str(told["date"] or ""),
            since=_version(told.get("since")),
            until=_version(told.get("until")),
            mode=told.get("mode"),
            our_stage=told.get("our_stage"),
        )
    except KeyError as error:
        raise HarnessBug(f"{where}: {error} is missing") from error
    if complaint := _complaint(entry):
        raise HarnessBug(f"{where}: {complaint}")
    return entry


def _version(value: Any) -> str | None:
    return None if value is None else str(value)


def _complaint(entry: KeyMeaning) -> str | None:
    if not entry.source or not entry.date:
        return "a meaning without a source and a date does not load"
    if entry.scope not in SCOPES:
        return f"scope {entry.scope!r} is none of {', '.join(SCOPES)}"
    if entry.of not in REDUCTIONS:
        return f"of {entry.of!r} is none of {', '.join(REDUCTIONS)}"
    if (entry.quantity == STAGE_SECONDS) != (entry.our_stage in STAGES):
        return f"our_stage {entry.our_stage!r}: {STAGE_SECONDS} need one of {', '.join(STAGES)}, nothing else has one"
    if entry.measure and not entry.same and not entry.differs_because:
        return "alike in name, other in meaning: differs_because has to say why"
    return None
