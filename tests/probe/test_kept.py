"""What is kept beside a framework's checkpoint, and what a restart finds of it."""

from pathlib import Path
from typing import Any

from harness.contract import RESUMED, compact, read_cell
from harness.probe import Probe
from harness.probe.kept import digest_of, given_items, keep, newest, say_resumed

ITEMS = {"parameters": "aa", "optimizer": "bb", "queue": "cc"}


def cell(folder: Path, attempt: int = 0) -> dict[str, Any]:
    decoding = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 8}
    return {
        "run_id": "check",
        "cell_id": "mine",
        "directory": str(folder),
        "attempt": attempt,
        "seed": 1,
        "layout": {"name": "colocated_sync", "lag_bound": 0},
        "profile": {"device": "cpu"},
        "task": decoding | {"advantage_std": "group", "std_ddof": 1, "advantage_eps": 1e-4},
    }


def _saved(folder: Path, step: int) -> None:
    path = folder / "theirs" / f"step-{step}"
    path.mkdir(parents=True)
    (path / "weights").write_bytes(b"12345")
    probe = Probe(cell(folder), "main")
    probe.update(**_update(step))
    keep(probe, path, 1, step, step, ITEMS, {"batches": step})
    probe.update(**_update(step + 1))
    probe.flush()


def _update(step: int) -> dict[str, Any]:
    row = {"step": step, "batch_id": f"b{step}", "policy_version_before": step, "policy_version_after": step + 1}
    row |= {"t_start": step, "t_end": step + 1, "applied": True, "loss": 0.0, "grad_norm": 1.0, "learning_rate": 1.0}
    return row | dict.fromkeys(("records", "groups", "policy_tokens", "padded_tokens"), 1)


def test_a_first_attempt_never_resumes(tmp_path: Path) -> None:
    _saved(tmp_path, 2)
    assert newest(cell(tmp_path)) is None
    found = newest(cell(tmp_path, attempt=1))
    assert found is not None
    assert (found.path, found.step, found.state) == ("theirs/step-2", 2, {"batches": 2})


def test_one_that_the_framework_removed_is_passed_over(tmp_path: Path) -> None:
    _saved(tmp_path, 2)
    (tmp_path / "theirs" / "step-2").rename(tmp_path / "gone")
    assert newest(cell(tmp_path, attempt=1)) is None


def test_what_came_after_is_taken_back_and_each_item_is_named(tmp_path: Path) -> None:
    _saved(tmp_path, 2)
    again = cell(tmp_path, attempt=1)
    kept, probe = newest(again), Probe(again, "main")
    held = {"parameters": "aa", "optimizer": "dd"}
    say_resumed(probe, kept, 2, 2, held, {"optimizer": "its moments"})
    probe.close()
    compact(tmp_path / "streams", tmp_path / "ledger", "mine")
    ledger = read_cell(tmp_path / "ledger", "mine")
    assert ledger.table("updates")["step"].to_pylist() == [2]
    assert ledger.table("lost_updates")["step"].to_pylist() == [3]
    note = ledger.manifest[f"{RESUMED}1"]["restored"]
    states = {name: item["state"] for name, item in note.items()}
    assert states == {"parameters": "restored", "optimizer": "restarted", "queue": "lost"}
    assert note["optimizer"]["evidence"] == "its moments"
    (row,) = ledger.table("checkpoints").to_pylist()
    assert (row["bytes"], row["ok"], row["path"]) == (5, True, "theirs/step-2")


def test_given_items_follow_the_settings(tmp_path: Path) -> None:
    same = given_items(cell(tmp_path), {"tokenizer": "t"})
    assert same == given_items(cell(tmp_path, attempt=1), {"tokenizer": "t"})
    other = given_items(cell(tmp_path), {"tokenizer": "u"})
    assert [name for name in same if same[name] != other[name]] == ["component_versions"]
    assert digest_of(1.0) != digest_of(1.5)
