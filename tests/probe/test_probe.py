"""The probe: spans, notes, and the disabled twin that does nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.contract import compact, read_cell
from harness.errors import HarnessBug
from harness.probe import Probe, memory
from harness.probe.hooks import HookPoint, verify_hooks
from harness.probe.memory import MemorySampler


def _cell(folder: Path, **changes: Any) -> dict[str, Any]:
    cell = {"run_id": "run/c", "cell_id": "c", "directory": str(folder), "observer": True, "attempt": 0}
    return cell | changes


def test_spans_notes_and_memory_reach_the_ledger(tmp_path: Path) -> None:
    probe = Probe(_cell(tmp_path))
    with probe.span("decode", trace_id="gen-0", policy_version=3, step=7) as span:
        span.output_tokens += 64
        span.detail = {"forwards": 8}
    with pytest.raises(ZeroDivisionError), probe.span("verifier", trace_id="gen-0"):
        _ = 1 // 0
    probe.note("engine", "transformers")
    probe.close()
    compact(tmp_path / "streams", tmp_path / "ledger", "c")
    ledger = read_cell(tmp_path / "ledger", "c")
    decode, verifier = ledger.table("spans").to_pylist()
    assert (decode["stage"], decode["output_tokens"], decode["policy_version"], decode["step"]) == ("decode", 64, 3, 7)
    assert json.loads(decode["detail"]) == {"forwards": 8}
    assert decode["t_end"] >= decode["t_start"]
    assert verifier["stage"] == "verifier"
    assert ledger.manifest["engine"] == "transformers"
    assert ledger.manifest["finished"] is True
    phases = {row["phase"] for row in ledger.table("memory").to_pylist()}
    assert phases == {"decode", "verifier"}


def test_an_unknown_stage_is_our_bug(tmp_path: Path) -> None:
    with pytest.raises(HarnessBug, match="thinking"):
        Probe(_cell(tmp_path)).add_span("thinking", 0, 1, trace_id="t")


def test_a_disabled_probe_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cell.json"
    path.write_text(json.dumps(_cell(tmp_path, observer=False)))
    monkeypatch.setenv("RLAXES_CELL", str(path))
    probe = Probe.from_environment()
    with probe.span("decode", trace_id="t") as span:
        span.records = 1
    probe.update(step=0)
    probe.close()
    assert not probe.enabled
    assert not (tmp_path / "streams").exists()


def test_a_process_that_rlaxes_did_not_start_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLAXES_CELL", raising=False)
    with pytest.raises(HarnessBug, match="rlaxes run"):
        Probe.from_environment()


def test_progress_is_whole_on_disk_and_rate_limited(tmp_path: Path) -> None:
    probe = Probe(_cell(tmp_path))
    for step in range(1, 6):
        probe.progress(step, 5, "training")
    assert json.loads((tmp_path / "progress.json").read_text()) == {"done": 5, "total": 5, "text": "training"}


def test_what_is_said_before_the_first_step_is_never_left_out(tmp_path: Path) -> None:
    probe = Probe(_cell(tmp_path))
    for text in ("starting Ray", "loading vLLM"):
        probe.progress(0, 5, text)
    assert json.loads((tmp_path / "progress.json").read_text())["text"] == "loading vLLM"


def test_stages_are_sampled_in_turn_and_not_more_often_than_a_run_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.1, 10.2, 10.3, 11.5, 11.6, 12.8])
    monkeypatch.setattr(memory.time, "monotonic", lambda: next(clock))
    sampler = MemorySampler()
    order = ["decode", "decode", "verifier", "verifier", "decode", "verifier", "verifier"]
    assert [bool(sampler.sample_if_due(stage)) for stage in order] == [True, False, True, False, True, False, True]


def test_hook_drift_is_named() -> None:
    points = [
        HookPoint("json:JSONEncoder.default", "tokens", "there", ("o",)),
        HookPoint("json:JSONEncoder.gone", "decode", "the ids"),
        HookPoint("no_such_module:f", "decode", "the ids"),
        HookPoint("json:dumps", "decode", "the ids", ("o2",)),
    ]
    messages = verify_hooks(points)
    assert len(messages) == 3
    assert "json:JSONEncoder.gone (decode) is gone: the ids" in messages[0]
    assert "no_such_module" in messages[1]
    assert "no parameter ['o2']" in messages[2]


def test_the_queue_and_the_controls_reach_the_ledger(tmp_path: Path) -> None:
    probe = Probe(_cell(tmp_path))
    depth = {"depth_records": 4, "depth_tokens": 16, "depth_bytes": 208}
    probe.queue("put", records=4, tokens=16, **depth)
    probe.queue("close", records=0, tokens=0, reason="records", **depth)
    control = {"published_version": 0, "policy_version": 0, "replica": 1, "tokens": 2, "t": 1}
    probe.controls([control | {"engine_logprobs": [-0.5, -1.0], "trainer_logprobs": [-0.5, -1.25]}])
    with pytest.raises(HarnessBug, match="shuffle"):
        probe.queue("shuffle", records=0, tokens=0, **depth)
    assert probe.mark() == {"process": "main", "attempt": 0, "flushes": {"manifest": 1, "queue": 1, "controls": 1}}
    probe.close()
    compact(tmp_path / "streams", tmp_path / "ledger", "c")
    ledger = read_cell(tmp_path / "ledger", "c")
    assert [(row["event"], row["reason"]) for row in ledger.table("queue").to_pylist()] == [
        ("put", None),
        ("close", "records"),
    ]
    assert ledger.table("controls")["trainer_logprobs"].to_pylist() == [[-0.5, -1.25]]
