"""What every cell of an adapter has to hold: each test is one rule, and says in a line what broke it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from harness.audit import check_run
from harness.contract.schema import FATES
from harness.measure.spans import GENERATING
from harness.probe.faults import PROCESSES
from harness.task.kinds import kind_of
from harness.task.problem import Problem
from tests.conformance.cells import COMPLETIONS, MAX_TOKENS, KitRun

NOTES = {
    "settings", "versions", "trainer_models", "window", "engine", "absent_stages", "device_count",
    "final_parameter_sha256",
}  # fmt: skip
HARNESS_ALONE = {"name", "problems", "dataset", "generator", "warmup_steps", "verifier_timeout_s"}
"""Task settings that no framework sees, of which fidelity need not speak."""


OVER_AT_ONCE = 5.0
"""Seconds: what so short a cell says before its first step may be gone before the harness looks, ten times a second."""


def test_it_runs_to_its_end(run: KitRun) -> None:
    assert run.row["status"] == "ok", f"{run.row['cause']}: {run.row['reason']}; see {run.directory / 'output.log'}"


def test_its_ledger_is_whole_and_lawful(run: KitRun) -> None:
    found = check_run(run.folder)
    assert not found, f"{len(found)} violations, the first: {found[0]}"


def test_it_takes_the_steps_that_were_asked(run: KitRun) -> None:
    updates = run.rows("updates")
    assert [update["step"] for update in updates] == list(range(run.task["steps"])), "steps missing or out of order"
    records = {update["records"] for update in updates}
    assert records == {COMPLETIONS // run.task["minibatches"]}, f"updates of {records} records"
    batches = run.task["steps"] // run.updates_per_batch
    assert len(run.rows("rollouts")) >= batches * COMPLETIONS, "fewer completions than its batches have"


def test_its_counters_are_those_of_its_tokens(run: KitRun) -> None:
    """Everything that is counted is counted again, from the tokens themselves."""
    policy = {row["sample_id"]: sum(row["policy_mask"]) for row in run.rows("rollouts")}
    by_step = Counter[int]()
    for row in run.rows("trained"):
        assert row["policy_tokens"] == policy[row["sample_id"]], f"trained row of {row['sample_id']}"
        by_step[row["step"]] += policy[row["sample_id"]]
    assert {update["step"]: update["policy_tokens"] for update in run.rows("updates")} == by_step, "updates"
    assert {row["sample_id"]: row["policy_tokens"] for row in run.rows("fates")} == policy, "fates"


def test_every_generated_token_ends_somewhere(run: KitRun) -> None:
    generated = sum(span["output_tokens"] for span in run.rows("spans") if span["stage"] in GENERATING)
    ended = Counter[str]()
    for row in run.rows("fates"):
        ended[row["fate"]] += row["policy_tokens"]
    assert ended.keys() <= set(FATES)
    assert generated == ended.total(), f"{generated} tokens were generated, {dict(ended)} are accounted for"
    assert ended["trained"], "nothing was trained on"


def test_lengths_are_as_the_track_says(run: KitRun) -> None:
    lengths = {len(row["response_tokens"]) for row in run.rows("rollouts")}
    assert max(lengths) <= MAX_TOKENS, f"a completion of {max(lengths)} tokens"
    if run.row["track"] == "fixed_length":
        assert lengths == {MAX_TOKENS}, f"lengths {sorted(lengths)} on the track of fixed lengths"


def test_rewards_are_the_verifiers_own(run: KitRun) -> None:
    """Scored again from the texts, where the adapter has a bundle and keeps them."""
    problems = _problems(run.folder / "prompts.jsonl")
    score = kind_of(run.task["name"]).scorer(run.task["problems"])
    for row in run.rows("rollouts") if problems else []:
        if row["text"] is not None and row["reward_total"] is not None:
            again = score(problems[row["prompt_id"]], row["text"]).total
            assert row["reward_total"] == again, f"{row['sample_id']}: {row['reward_total']}, its text scores {again}"


def _problems(path: Path) -> dict[str, Problem]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    fields = set(Problem.__dataclass_fields__)
    found = [Problem(**{key: value for key, value in json.loads(line).items() if key in fields}) for line in lines]
    return {problem.prompt_id: problem for problem in found}


def test_its_lag_is_within_its_layouts_word(run: KitRun) -> None:
    """A batch is at most `lag_bound` updates behind at its first step, and its later minibatches wait for that one.
    Where nothing overlaps, the updates over a batch are all the lag there is."""
    lags, first = run.lags()
    bound = run.config["layout"]["lag_bound"] + run.task["minibatches"] - 1
    assert min(lags) >= 0, "a sample was trained on before the weights that sampled it existed"
    assert max(first) <= bound, f"a sample was {max(first)} updates behind at its first step, where {bound} may be"
    if run.config["layout"]["synchrony"] == "synchronous":
        assert set(lags) == set(range(run.updates_per_batch)), f"lags {sorted(set(lags))} in a synchronous layout"


def test_it_writes_every_note(run: KitRun) -> None:
    missing = NOTES - run.ledger.manifest.keys()
    assert not missing, f"no note {', '.join(sorted(missing))}"
    if run.config["profile"]["device"] == "cpu":
        assert run.ledger.manifest["device_count"] == 1, "pools of one host are no devices: see reserved_devices"


def test_fidelity_is_complete(run: KitRun) -> None:
    rows: dict[str, dict[str, Any]] = {row["setting"]: row for row in run.row["fidelity"]}
    silent = set(run.task) - HARNESS_ALONE - rows.keys()
    assert not silent, f"fidelity does not speak of {', '.join(sorted(silent))}"
    bare = [setting for setting, row in rows.items() if row["grade"] != "exact" and not row["note"]]
    assert not bare, f"not exact, and no word why: {', '.join(bare)}"


def test_the_memory_of_each_of_its_processes_is_sampled(run: KitRun) -> None:
    rows = run.rows("memory")
    assert any(row["component"] == "tree" for row in rows), "the harness sampled no memory of the whole"
    sampled = {row["pid"] for row in rows if row["component"] != "tree" and row["bytes"] > 0}
    unseen = [name for name, pid in _processes(run).items() if pid not in sampled]
    assert not unseen, f"no sample of the memory of {', '.join(unseen)}"


def _processes(run: KitRun) -> dict[str, int]:
    """Process id of each process that wrote, by the name of its probe."""
    files = (run.directory / PROCESSES).iterdir()
    return {file.name: int(file.read_text(encoding="ascii")) for file in files}


def test_it_says_what_it_is_at_before_its_first_step(run: KitRun) -> None:
    attempt = run.row["attempts"][-1]
    said = attempt["startup"] or attempt["wall_s"] < OVER_AT_ONCE
    assert said, "a hang in its start-up would have no sign of life (Probe.progress)"


def test_none_of_its_processes_lives_on(run: KitRun) -> None:
    assert not run.survivors, f"still there: {', '.join(run.survivors)}"


def test_it_begins_at_the_beginning_whatever_lies_around(run: KitRun) -> None:
    """Every cell but the first runs in a used output folder, the last where another cell's files lie."""
    first = run.rows("updates")[0]
    assert (first["step"], first["policy_version_before"]) == (0, 0), "it went on from somewhere"
    assert len(run.row["attempts"]) == 1, "it was started more than once"
    assert not [key for key in run.ledger.manifest if key.startswith("resumed:")], "it says that it was resumed"
