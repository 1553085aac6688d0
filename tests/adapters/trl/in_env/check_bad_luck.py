"""Verifier errors, drift, and a framework that dies in the middle."""

import json
from pathlib import Path
from typing import Any

import pytest
from trl import GRPOTrainer

from adapters.trl import inside
from adapters.trl.advantages import check_advantages
from adapters.trl.hooks import GENERATE, Returned, check_returned, hook_drift
from harness.contract import compact, read_cell
from harness.probe.hooks import HookDrift
from harness.task.verifier import Verdict, Verifier
from tests.adapters.trl.cells import cell_of
from tests.adapters.trl.in_env.runs import run


def test_a_verifier_error_is_no_zero(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    score = Verifier.score

    def fails_on_the_first(self: Verifier, items: Any) -> list[Verdict]:
        verdicts = score(self, items)
        first = verdicts[0]
        return [Verdict(None, {}, "error", "too slow", first.t_start, first.t_end), *verdicts[1:]]

    monkeypatch.setattr(Verifier, "score", fails_on_the_first)
    done = run(tmp_path / "cell", bundle)
    failed = [row for row in done.rows("rollouts") if row["status"] == "infrastructure_error"]
    assert len(failed) == 3
    assert {(row["reward_total"], row["advantage"], row["group_complete"]) for row in failed} == {(None, 0.0, False)}
    groups = {row["group_id"] for row in failed}
    assert all(row["group_complete"] == (row["group_id"] not in groups) for row in done.rows("rollouts"))
    faults = done.rows("faults")
    assert [row["sample_id"] for row in faults] == [row["sample_id"] for row in failed]
    assert {(row["kind"], row["cause"]) for row in faults} == {("verifier_error", "infrastructure")}


def test_what_was_never_trained_on_is_in_flight(tmp_path: Path, bundle: Path) -> None:
    done = run(tmp_path / "cell", bundle, steps=3, minibatches=2)
    fates = [row["fate"] for row in done.rows("fates")]
    assert (fates.count("trained"), fates.count("in_flight"), len(fates)) == (24, 8, 32)


@pytest.mark.parametrize("method", ["_generate", "_get_per_token_logps_and_entropies"])
def test_another_number_of_values_is_drift_before_the_run(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GRPOTrainer, method, _returns_two)
    found = hook_drift()
    assert found
    assert all(message.startswith("hook drift:") for message in found)
    assert any(method in message for message in found)


def _returns_two(self: Any, prompts: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
    return self, prompts


def test_a_lost_method_is_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(GRPOTrainer, "_calculate_rewards")
    assert any("_calculate_rewards" in message for message in hook_drift())


def test_drift_while_running_is_named() -> None:
    with pytest.raises(HookDrift, match=r"hook drift: .*_generate returned 2 values"):
        check_returned(GENERATE, (1, 2))
    with pytest.raises(HookDrift, match="returned list"):
        check_returned(Returned("a:b", ("x",)), [1])
    with pytest.raises(HookDrift, match="advantages"):
        check_advantages([0.0, 1.0], [-1.0, 1.0], 2, scaled=True)


@pytest.mark.parametrize(
    ("error", "kind", "cause"),
    [
        (RuntimeError("it died"), "exception", "system"),
        (MemoryError("no more"), "out_of_memory", "system"),
        (HookDrift("hook drift: gone"), "hook_drift", "harness"),
    ],
)
def test_a_crash_is_written_and_raised(
    error: Exception, kind: str, cause: str, tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = cell_of(tmp_path, bundle, steps=4, minibatches=2)
    (tmp_path / "cell.json").write_text(json.dumps(cell), encoding="utf-8")
    monkeypatch.setenv("RLAXES_CELL", str(tmp_path / "cell.json"))
    monkeypatch.setattr("sys.argv", ["inside"])
    clip = GRPOTrainer._clip_grad_norm

    def dies(self: Any, model: Any) -> Any:
        if self.state.global_step == 1:
            raise error
        return clip(self, model)

    monkeypatch.setattr(GRPOTrainer, "_clip_grad_norm", dies)
    with pytest.raises(type(error)):
        inside.main()
    compact(tmp_path / "streams", tmp_path / "ledger", "trl")
    ledger = read_cell(tmp_path / "ledger", "trl")
    faults = ledger.table("faults").to_pylist()
    assert [(row["kind"], row["cause"]) for row in faults] == [(kind, cause)]
    assert ledger.torn
    assert "settings" in ledger.manifest
    assert sorted(row["fate"] for row in ledger.table("fates").to_pylist()) == ["in_flight"] * 8 + ["trained"] * 8
    assert not (tmp_path / "result.json").exists()
