"""Figures of a run that was recorded elsewhere: every figure that a key map calls ours has a rule for its steps."""

from harness.execute.adapter import find_adapters
from harness.ingest.keymap import key_map
from harness.measure.api import catalogue
from harness.measure.ingested import ALSO, REDUCED


def test_each_figure_that_a_key_map_names_ours_can_be_made() -> None:
    same = {
        entry.measure for name in find_adapters() for entry in key_map(name).entries if entry.same and entry.measure
    }
    assert {measure.split("[")[0] for measure in same} <= REDUCED.keys()


def test_each_rule_is_of_a_figure() -> None:
    assert {*REDUCED, *ALSO, *ALSO.values()} <= {kind.tag for kind in catalogue()}
