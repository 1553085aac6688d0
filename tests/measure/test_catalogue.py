"""What every measure owes its reader."""

from pathlib import Path

import pytest
import yaml

from harness.measure.api import catalogue
from harness.measure.measure import TOPICS, Measure
from tests.fakes import ROOT

SUFFIXES = ("_per_device", "_in_stage")
KINDS = catalogue()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.tag)
def test_it_says_what_it_is(kind: type[Measure]) -> None:
    assert kind.title
    assert kind.unit
    assert kind.needs
    assert kind.direction in {"higher", "lower", "none"}
    assert kind.source.startswith("12.")
    assert 30 < len(kind.definition) < 500
    assert kind.definition.endswith(".")


def test_tags_are_unique_and_stand_by_topic() -> None:
    tags = [kind.tag for kind in KINDS]
    assert len(set(tags)) == len(tags)
    topics = [TOPICS.index(kind.topic) for kind in KINDS]
    assert topics == sorted(topics)


def test_titles_tell_figures_apart() -> None:
    titles = [kind.title for kind in KINDS]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.tag)
def test_a_test_holds_it_to_a_number(kind: type[Measure]) -> None:
    tag = next((kind.tag.removesuffix(suffix) for suffix in SUFFIXES if kind.tag.endswith(suffix)), kind.tag)
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    stem = tag.rsplit("_", 1)[0] + "_{"  # tests of a family of quantiles build the tag
    assert any(tag in text or stem in text for text in texts), f"no test names {tag}"


@pytest.mark.parametrize("path", sorted(ROOT.glob("adapters/*/adapter.yaml")), ids=lambda path: path.parent.name)
def test_native_figures_stand_beside_figures_that_exist(path: Path) -> None:
    tags = {kind.tag for kind in KINDS}
    for said in yaml.safe_load(path.read_text(encoding="utf-8")).get("native", []):
        assert said["measure"] is None or said["measure"].partition("[")[0] in tags
        assert said.get("reduce", "mean") in {"mean", "sum", "max", "per_step", "increase"}
        assert {"key", "definition", "differs_because"} <= said.keys()
