"""How a framework's own keys changed from version to version, as its key map knows it: renamed, other in meaning, new,
gone."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from harness.ingest.keymap import KeyMeaning, key_map

WORDS = {
    "unit": "unit",
    "scope": "of",
    "of": "as",
    "measure": "the figure of ours that it is like",
    "same": "the same as ours",
    "differs_because": "unlike ours, because",
}
"""What makes a key mean another thing under the same name, in words."""


@dataclass(frozen=True)
class KeyChange:
    """One key at one version.

    Attributes:
        version: the first version in which it is so.
        key: its name from then on; the last name of one that is gone.
        was: the former name of one that was renamed.
        what: how its meaning differs from the one before, in words; empty where it does not.
        mode: what kind of run writes it so (`sync`, `async`); None: any.
        source, date: what says so, and when that was read.
    """

    framework: str
    version: str
    kind: Literal["renamed", "other meaning", "new", "gone"]
    key: str
    was: str | None
    what: str
    mode: str | None
    source: str
    date: str

    def line(self) -> str:
        """It in words."""
        key = f"{self.key} ({self.mode})" if self.mode else self.key
        said = {
            "renamed": f"{self.was} is called {key}",
            "other meaning": f"{key} means another thing",
            "new": f"{key} is new",
            "gone": f"{key} is gone",
        }[self.kind]
        return f"{said}: {self.what}" if self.what else said


def key_changes(framework: str) -> list[KeyChange]:
    """Every change that the map of a framework knows, oldest first; keys that did not change are in none."""
    known = key_map(framework).entries
    bare = {(entry.key, entry.since, entry.until, entry.mode) for entry in known}
    entries = [entry for entry in known if (entry.since or entry.until) and not _repeats(entry, bare)]
    versions = {version for entry in entries for version in (entry.since, entry.until) if version}
    return [change for version in sorted(versions, key=Version) for change in _at(framework, version, entries)]


def _repeats(entry: KeyMeaning, bare: set[tuple[str, str | None, str | None, str | None]]) -> bool:
    """Whether it is another entry below a prefix: `train/reward` beside `reward`."""
    parts = entry.key.split("/")
    shorter = ("/".join(parts[at:]) for at in range(1, len(parts)))
    return any((key, entry.since, entry.until, entry.mode) in bare for key in shorter)


def _at(framework: str, version: str, entries: Sequence[KeyMeaning]) -> Iterator[KeyChange]:
    """What ends and what begins at a version, paired: first by the name of the key, then by what it is a figure of."""
    at = Version(version)
    ended = [entry for entry in entries if entry.until and Version(entry.until) == at]
    began = [entry for entry in entries if entry.since and Version(entry.since) == at]
    for was, now in _pairs(ended, began, lambda entry: (entry.key, entry.mode)):
        if what := _difference(was, now):
            yield KeyChange(framework, version, "other meaning", now.key, None, what, *_told(now))
    for was, now in _pairs(ended, began, _figure):
        yield KeyChange(framework, version, "renamed", now.key, was.key, _difference(was, now), *_told(now))
    for entry in began:
        yield KeyChange(framework, version, "new", entry.key, None, "", *_told(entry))
    for entry in ended:
        yield KeyChange(framework, version, "gone", entry.key, None, "", *_told(entry))


def _told(entry: KeyMeaning) -> tuple[str | None, str, str]:
    return entry.mode, entry.source, entry.date


def _pairs(
    ended: list[KeyMeaning], began: list[KeyMeaning], by: Callable[[KeyMeaning], Hashable]
) -> list[tuple[KeyMeaning, KeyMeaning]]:
    """Takes out of both lists, and returns, the entries that `by` gives the same for; None pairs with nothing."""
    pairs = []
    for now in list(began):
        was = next((entry for entry in ended if by(now) is not None and by(entry) == by(now)), None)
        if was is not None:
            ended.remove(was)
            began.remove(now)
            pairs.append((was, now))
    return pairs


def _figure(entry: KeyMeaning) -> Hashable:
    """What a key is a figure of; None where the map does not say."""
    of = entry.quantity or entry.measure
    return (of, entry.of, entry.unit, entry.part, entry.mode) if of else None


def _difference(was: KeyMeaning, now: KeyMeaning) -> str:
    """How two meanings differ, in words; empty where they do not."""
    said = ((name, getattr(was, name), getattr(now, name)) for name in WORDS)
    return "; ".join(f"{WORDS[name]}: {_said(old)} -> {_said(new)}" for name, old, new in said if old != new)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else str(value)
