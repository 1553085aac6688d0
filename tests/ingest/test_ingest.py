"""`rlaxes ingest` from end to end: logs become run folders that check, report, and hold what the files say."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from tests import DATA
from tests.ingest.foreign import command, ingested, manifest_of, rows_of, verl_log

VERL = DATA / "real_logs" / "verl"
CELL = DATA / "trl_cell"
KEYS = {"framework", "version", "files", "steps", "series", "unknown_keys", "warnings", "ledger"}
SERIES_KEYS = {"measure", "native_key", "unit", "scope", "n", "first", "last"}


def test_json_of_one_run(tmp_path: Path) -> None:
    log = VERL / "verl_grpo_npfloat_2025-12.log"
    (told,) = ingested(tmp_path, log)
    assert told.keys() == KEYS
    assert (told["framework"], told["steps"], told["unknown_keys"], told["warnings"]) == ("verl", 54, [], [])
    assert told["files"][0]["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    assert told["files"][0]["bytes"] == log.stat().st_size
    series = {one["native_key"]: one for one in told["series"]}
    assert all(one.keys() == SERIES_KEYS for one in told["series"])
    memory = series["perf/max_memory_allocated_gb"]
    assert (memory["unit"], memory["scope"], memory["measure"], memory["n"]) == ("GiB", "rank 0", None, 54)
    assert series["actor/grad_norm"]["measure"] == "grad_norm"
    assert rows_of(told)["perf/total_num_tokens"][-1] == (54, 1829.0)


def test_the_folder_passes_the_check_and_makes_a_report(tmp_path: Path) -> None:
    (told,) = ingested(tmp_path, VERL / "verl_grpo_npfloat_2025-12.log")
    run = Path(told["ledger"]).parent
    assert command("check", run)[0] == 0
    code, printed, _ = command("report", run, "--json")
    rows = {row["measure"]: row for row in json.loads(printed)["rows"]}
    assert code == 0
    norms = [value for _, value in rows_of(told)["actor/grad_norm"]]
    assert rows["grad_norm"]["value"] == pytest.approx(sum(norms) / 54)
    assert rows["grad_norm"]["state"] == "as written"
    assert "as the framework wrote it: actor/grad_norm, " in rows["grad_norm"]["evidence"]
    assert rows["reward"]["value"] is None
    assert "critic/score/mean is alike, but: " in rows["reward"]["reason"]
    assert rows["lag_max"]["reason"] == "the source does not record it"
    valued = {name for name, row in rows.items() if row["value"] is not None}
    assert valued == {"grad_norm", "grad_norm_p50", "warmup_steps_dropped"}


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    (told,) = ingested(tmp_path, VERL / "verl_grpo_npfloat_2025-12.log")
    (path,) = Path(told["ledger"]).glob("*.native.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert command("check", Path(told["ledger"]).parent)[0] == 1


def test_trl_by_its_own_files_agrees_with_our_ledger_or_says_nothing(tmp_path: Path) -> None:
    ours = json.loads((CELL / "ours.json").read_text())
    dropped = str(int(ours["figures"]["warmup_steps_dropped"]))
    words = ("--version", ours["trl"], "--warmup-steps", dropped, "--output", tmp_path, "--json")
    _, printed, _ = command("ingest", CELL / "trainer_state.json", CELL / "output.log", *words)
    told = json.loads(printed)
    assert (told["framework"], told["version"], told["steps"]) == ("trl", "1.16.0", 6)
    _, printed, _ = command("report", Path(told["ledger"]).parent, "--json")
    rows = {row["measure"]: row for row in json.loads(printed)["rows"]}
    theirs = {name: row["value"] for name, row in rows.items() if row["value"] is not None}
    assert theirs.keys() >= {"completion_length", "grad_norm", "grad_norm_p50", "loss", "reward"}
    assert theirs == pytest.approx({name: ours["figures"][name] for name in theirs}, rel=1e-5)
    assert all(row["reason"] for row in rows.values() if row["value"] is None)
    assert {"step_seconds", "truncated_share", "output_tokens_per_second", "lag_max"}.isdisjoint(theirs)


def test_a_checkpoint_that_is_a_prefix_of_another_counts_once(tmp_path: Path) -> None:
    folder = DATA / "real_logs" / "trl"
    paths = [folder / f"trainer_state_trl0.2x_checkpoint{steps}_2026-02.json" for steps in (400, 500)]
    (told,) = ingested(tmp_path, *paths)
    assert told["steps"] == 50
    assert next(one["n"] for one in told["series"] if one["native_key"] == "loss") == 50
    grown = rows_of(told)["growth since the entry before: num_tokens"]
    assert grown[0] == (20, 83206.0)
    assert len(grown) == 49


def test_a_folder_of_several_runs(tmp_path: Path) -> None:
    runs = ingested(tmp_path, VERL)
    assert sorted(run["steps"] or 0 for run in runs) == [0, 6, 9, 54, 61]
    assert len({run["ledger"] for run in runs}) == 5


def test_standard_input_and_archives(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(verl_log(range(1, 6)))
    with tarfile.open(tmp_path / "runs.tar.gz", "w:gz") as archive:
        archive.add(log, "../../outside/run.log")
    code, printed, _ = command("ingest", "-", "--output", tmp_path / "a", "--json", stdin=log.read_bytes())
    assert (code, json.loads(printed)["steps"]) == (0, 5)
    (told,) = ingested(tmp_path / "b", tmp_path / "runs.tar.gz")
    assert told["steps"] == 5
    assert not (tmp_path.parent / "outside").exists()


def test_words_for_a_reader(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(verl_log(range(1, 4)).replace("training/global_step", "mine/odd_key"))
    code, printed, _ = command("ingest", log, "--output", tmp_path)
    assert code == 0
    assert "3 steps, 3 series, 1 keys unknown" in printed
    (told,) = ingested(tmp_path, log)
    assert told["unknown_keys"] == ["mine/odd_key"]
    assert manifest_of(told)["profile"] == "ingested"
    assert command("report", "latest", "--output", tmp_path)[0] == 0
