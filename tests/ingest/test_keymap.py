"""What native keys mean, and that the map of each framework loads, with a source and a date for every key."""

from pathlib import Path

import pytest

from harness.audit.quantities import QUANTITIES
from harness.errors import HarnessBug
from harness.execute.adapter import find_adapters
from harness.ingest import keymap
from harness.ingest.keymap import KEYS_FILE, KeyMap, KeyMeaning, framework_of, key_map
from harness.ingest.reading import UNKNOWN
from harness.measure.api import catalogue

MAPPED = sorted(name for name, adapter in find_adapters().items() if (adapter.folder / KEYS_FILE).exists())
ENTRY = {"unit": "s", "scope": "run", "of": "mean", "quantity": None, "measure": None, "same": False}
ENTRY |= {"differs_because": None, "source": "a file", "date": "2026-11-29"}


SHARED = [("wall_time", "s"), ("_step", "1")]


def entry(key: str, **changes: object) -> KeyMeaning:
    return KeyMeaning(key=key, **(ENTRY | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("framework", MAPPED)
def test_a_map_loads_and_names_what_there_is(framework: str) -> None:
    tags = {kind.tag for kind in catalogue()}
    for meaning in key_map(framework).entries:
        assert meaning.quantity is None or meaning.quantity in QUANTITIES
        assert meaning.measure is None or meaning.measure in tags


def test_exact_before_pattern_and_later_before_earlier() -> None:
    keys = KeyMap("x", (entry("a/*"), entry("a/b", since="0.1"), entry("a/b", since="0.3"), entry("old", until="0.2")))
    assert keys.meaning("a/b", "0.2") == entry("a/b", since="0.1")
    assert keys.meaning("a/b", "0.3") == keys.meaning("a/b") == entry("a/b", since="0.3")
    assert keys.meaning("a/c") == entry("a/*")
    assert keys.meaning("old", "0.2") is None
    assert keys.meaning("old", "0.1.9") == entry("old", until="0.2")
    assert keys.meaning("unheard of") is None


def test_a_key_that_means_two_things_means_neither_where_the_mode_is_not_known() -> None:
    keys = KeyMap("x", (entry("a", mode="sync"), entry("a"), entry("a", mode="async"), entry("b", mode="sync")))
    assert keys.meaning("a", mode="async") == entry("a", mode="async")
    assert keys.meaning("a", mode="sync") == entry("a", mode="sync")
    assert keys.meaning("a") == entry("a")
    assert keys.meaning("b") is None


def test_keys_that_trackers_put_below_a_name() -> None:
    keys = key_map("trl")
    plain, below = keys.meaning("rewards/f/mean"), keys.meaning("train/rewards/f/mean")
    assert plain is not None
    assert below is not None
    assert (plain.unit, below.unit) == ("1", "1")
    assert framework_of(["train/reward", "train/num_tokens", "train/completions/mean_length", "train/loss"]) == "trl"


def test_of_an_unknown_version_what_is_not_ours_goes_first() -> None:
    keys = KeyMap("x", (entry("a", until="0.2"), entry("a", since="0.2", same=True)))
    assert keys.meaning("a") == entry("a", until="0.2")
    assert keys.meaning("a", "0.2") == entry("a", since="0.2", same=True)


def test_keys_tell_which_versions_a_log_may_be_of() -> None:
    first, second, third = entry("a", until="0.2"), entry("a", since="0.2", until="0.5"), entry("a", since="0.5")
    keys = KeyMap("x", (first, second, third, entry("new", since="0.3"), entry("old", until="0.4"), entry("b")))
    assert keys.narrowed(["a", "new", "b", "unheard of"]).entries[:2] == (second, third)
    assert keys.narrowed(["a", "old"]).entries[:2] == (first, second)
    assert keys.narrowed(["new", "old"]).meaning("a") == second
    assert keys.narrowed(["a", "b"]).entries == keys.entries
    contradictory = KeyMap("x", (entry("gone", until="0.2"), entry("new", since="0.2")))
    assert contradictory.narrowed(["gone", "new"]) is contradictory


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{key: a, unit: s}", "source and a date"),
        ("{key: a, source: x, date: 2026-11-29}", "'unit' is missing"),
        ("{key: a, unit: s, source: x, date: 2026-11-29, scope: cluster}", "scope 'cluster'"),
        ("{key: a, unit: s, source: x, date: 2026-11-29, of: median}", "of 'median'"),
        ("{key: a, unit: s, source: x, date: 2026-11-29, measure: reward}", "differs_because"),
    ],
)
def test_a_meaning_that_says_too_little_does_not_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, words: str
) -> None:
    (tmp_path / KEYS_FILE).write_text(f"keys:\n  - {line}\n", encoding="utf-8")
    monkeypatch.setattr(keymap, "find_adapter", lambda _: type("Found", (), {"folder": tmp_path}))
    with pytest.raises(HarnessBug, match=words):
        key_map.__wrapped__("x")


def made_of(monkeypatch: pytest.MonkeyPatch, folder: Path, **maps: list[str]) -> None:
    """Frameworks with these keys, and no others."""
    for name in maps:
        (folder / name).mkdir()
        (folder / name / KEYS_FILE).write_text("", encoding="utf-8")
    known = {name: KeyMap(name, tuple(map(entry, keys))) for name, keys in maps.items()}
    known[UNKNOWN] = KeyMap(UNKNOWN, (entry("wall_time"),))
    monkeypatch.setattr(
        keymap, "find_adapters", lambda: {name: type("A", (), {"folder": folder / name}) for name in maps}
    )
    monkeypatch.setattr(keymap, "key_map", known.__getitem__)


@pytest.mark.parametrize(
    ("keys", "framework"),
    [
        (["x/one", "both"], "x"),
        (["y/two", "y/three", "x/one"], "y"),
        (["x/one", "y/two"], None),
        (["both", "neither", "wall_time"], None),
        (["x/any"], "x"),
        (["x/is_y_s"], "y"),
        (["loss"], None),
        ([], None),
    ],
)
def test_whose_keys_these_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: list[str], framework: str | None
) -> None:
    made_of(monkeypatch, tmp_path, x=["x/*", "both"], y=["y/two", "y/three", "loss", "both", "x/is_y_s", "wall_time"])
    assert framework_of(keys) == framework


@pytest.mark.parametrize("framework", [UNKNOWN, *MAPPED])
def test_keys_of_a_format_mean_the_same_whoever_wrote_them(framework: str) -> None:
    for key, unit in SHARED:
        meaning = key_map(framework).meaning(key)
        assert meaning is not None
        assert meaning.unit == unit


@pytest.mark.parametrize("framework", MAPPED)
def test_a_map_is_recognised_by_its_own_keys(framework: str) -> None:
    assert framework_of([meaning.key for meaning in key_map(framework).entries if "*" not in meaning.key]) == framework


def test_seconds_of_a_stage_say_which_of_ours_they_are_nearest_to() -> None:
    told = {
        "key": "t/x",
        "unit": "s",
        "measure": None,
        "source": "s",
        "date": "2026-11-30",
        "quantity": "stage_seconds",
    }
    assert keymap._entry("map", {}, told | {"our_stage": "generate"}).our_stage == "generate"
    for wrong in (told, told | {"our_stage": "rollout"}, told | {"quantity": "samples", "our_stage": "generate"}):
        with pytest.raises(HarnessBug, match="our_stage"):
            keymap._entry("map", {}, wrong)
