"""TRL writes its own checkpoint, loads it in a later attempt, and each item is looked at, not taken for restored."""

from pathlib import Path
from typing import Any

from harness.contract import RESUMED
from tests.adapters.trl.in_env.runs import Run, run


def _attempt(folder: Path, bundle: Path, number: int, **settings: Any) -> Run:
    return run(folder, bundle, attempt=number, options={"checkpoint": {"every": 2, "keep": 2}}, **settings)


def _restored(done: Run) -> dict[str, str]:
    note = done.ledger.manifest[f"{RESUMED}1"]
    return {name: item["state"] for name, item in note["restored"].items()}


def test_a_later_attempt_goes_on_where_the_checkpoint_is(tmp_path: Path, bundle: Path) -> None:
    whole = run(tmp_path / "whole", bundle, steps=4)
    _attempt(tmp_path / "cell", bundle, 0, steps=4)
    last = tmp_path / "cell" / "kept" / "4.json"
    last.unlink()  # as if it had died after the third step
    done = _attempt(tmp_path / "cell", bundle, 1, steps=4)
    assert set(_restored(done).values()) == {"restored"}, _restored(done)
    assert [row["step"] for row in done.rows("updates")] == [0, 1, 2, 3]
    assert [row["step"] for row in done.rows("lost_updates")] == [2, 3]
    assert done.result["final_parameter_sha256"] == whole.result["final_parameter_sha256"]
    ids = [row["sample_id"] for row in done.rows("trained")]
    assert ids == [row["sample_id"] for row in whole.rows("trained")]
    assert len(done.spans("restore")) == 1
    assert len(done.spans("checkpoint")) == 3
    versions = [row["published_version"] for row in done.rows("publications")]
    assert versions == sorted(set(versions))
