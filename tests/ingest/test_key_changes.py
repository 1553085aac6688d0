"""Changes of native keys between versions, as the key maps know them."""

import pytest

from harness.execute.adapter import find_adapters
from harness.ingest.key_changes import KeyChange, key_changes
from harness.ingest.keymap import KEYS_FILE, key_map

MAPPED = sorted(name for name, adapter in find_adapters().items() if (adapter.folder / KEYS_FILE).exists())


def _at(framework: str, version: str) -> dict[str, KeyChange]:
    return {change.key: change for change in key_changes(framework) if change.version == version}


def test_a_key_that_is_called_otherwise() -> None:
    change = _at("trl", "0.17")["completions/mean_length"]
    assert (change.kind, change.was) == ("renamed", "completion_length")
    assert change.line().startswith("completion_length is called completions/mean_length: the same as ours: yes -> no")


def test_a_key_that_means_another_thing() -> None:
    change = _at("trl", "1.6")["reward"]
    assert (change.kind, change.was) == ("other meaning", None)
    assert "the same as ours: no -> yes" in change.what


def test_keys_that_came_and_went() -> None:
    assert _at("trl", "0.26")["step_time"].line() == "step_time is new"
    assert _at("trl", "0.22")["objective/kl"].line() == "objective/kl is gone"


@pytest.mark.parametrize("framework", MAPPED)
def test_changes_are_of_keys_in_the_map_and_stand_in_the_order_of_versions(framework: str) -> None:
    changes = key_changes(framework)
    known = {entry.key for entry in key_map(framework).entries}
    assert {change.key for change in changes} <= known
    assert not any(change.key.startswith("train/") for change in changes if framework == "trl")
    assert all(change.source and change.date for change in changes)
    assert bool(changes) == any(entry.since or entry.until for entry in key_map(framework).entries)
    renamed = [change for change in changes if change.kind == "renamed"]
    assert all(change.was not in {change.key, None} for change in renamed)
