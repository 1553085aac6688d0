import json
from pathlib import Path
from typing import Any

from harness.report.perfetto import write_perfetto
from tests.ledgers import lawful_cell


def _events(folder: Path) -> list[dict[str, Any]]:
    path = folder / "trace.json"
    write_perfetto(lawful_cell(folder), path)
    content = json.loads(path.read_text())
    assert set(content) == {"displayTimeUnit", "otherData", "traceEvents"}
    return list(content["traceEvents"])


def test_structure(tmp_path: Path) -> None:
    events = _events(tmp_path)
    assert {event["ph"] for event in events} == {"M", "X", "s", "f"}
    for event in events:
        assert isinstance(event["name"], str)
        if event["ph"] != "M":
            assert event["ts"] >= 0
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {"main", "cpu"}


def test_spans_in_microseconds_with_their_counts(tmp_path: Path) -> None:
    spans = {event["name"]: event for event in _events(tmp_path) if event["ph"] == "X"}
    decode = spans["decode"]
    assert (decode["ts"], decode["dur"]) == (0.0, 0.01)
    assert decode["args"] == {"trace_id": "gen-0", "policy_version": 0, "records": 4, "output_tokens": 16}
    assert spans["forward_backward"]["ts"] == 0.01


def test_a_flow_leads_from_generation_to_the_batch_that_trains_on_it(tmp_path: Path) -> None:
    ends = {event["ph"]: event for event in _events(tmp_path) if event["ph"] in {"s", "f"}}
    assert ends["s"]["id"] == ends["f"]["id"]
    assert ends["f"]["bp"] == "e"
    assert ends["s"]["name"] == "gen-0 -> batch-0-mb-0"
