"""The published rows: as printed, with a source, and the wrong ones known as wrong."""

import json

import pytest

from harness.ingest.readers.nemo_rl_console import NemoRlConsole
from harness.ingest.reading import Block
from harness.validate.outcome import Refused
from harness.validate.table import Row, published
from tests import DATA

STAGES = published().stages
OTHER_NAMES = {"marin_async_every_update": "marin_async_c1", "marin_async_every_second": "marin_async_c2"}
LABELS = {"id", "source", "mode", "split"}
LOG = DATA / "real_logs" / "nemo_rl" / "nemo_rl_grpo_gemma1b_8xB200_50steps_blocks_2026-02.log"
TIMERS = {
    "step": ("Total step time",),
    "gen": ("generation",),
    "old_log_prob": ("policy_and_reference_logprobs",),
    "update_actor": ("policy_training",),
    "weight_sync": ("prepare_for_generation/total",),
    "other": ("logprob_inference_prep", "training_prep", "data_processing", "reward_calculation"),
}


def test_every_row_names_a_source_that_is_listed() -> None:
    named = [row.source for row in (*STAGES.values(), *published().nemo)]
    named += [claim["source"] for claim in (*published().splits, *published().gains)]
    assert set(named) == set(published().sources)


def test_no_number_differs_from_the_tables_that_the_audit_is_tested_on() -> None:
    content = json.loads((DATA / "published_tables.json").read_text(encoding="utf-8"))
    ours = {OTHER_NAMES.get(name, name): row for name, row in STAGES.items()}
    rows = {row["id"]: row for row in content["stages"]}
    shared = [(name, key) for name in ours.keys() & rows.keys() for key in ours[name].values if key in rows[name]]
    assert len(shared) > 100
    for name, key in shared:
        if key not in LABELS:
            assert ours[name].values[key] == pytest.approx(rows[name][key]), (name, key)
    missing = rows.keys() - ours.keys()
    assert missing == {"verl_fa_stale_0.5"}, "which is verl_fa_7b_async_128"
    printed = {(row.values["avg_len"], row.values["gpus"], row.values["step"]) for row in published().nemo}
    assert {(row[1], row[2], row[5]) for row in content["nemo_rl"]["rows"]} <= printed


def test_the_means_of_the_log_are_those_of_the_log() -> None:
    with LOG.open("rb") as stream:
        blocks = list(NemoRlConsole().blocks(stream, lambda *_: None))
    steps = [block for block in blocks if block.kind == "training"]
    validated = {block.step for block in blocks if block.kind == "validation"}
    for name, chosen in (
        ("nemo_log_45_steps", [step for step in steps if step.step not in validated]),
        ("nemo_log_5_steps_that_validate", [step for step in steps if step.step in validated]),
    ):
        assert str(len(chosen)) in name
        for key, timers in TIMERS.items():
            mean = sum(_timer(step, timer) for step in chosen for timer in timers) / len(chosen)
            assert STAGES[name].need(key) == pytest.approx(mean, abs=1e-4), (name, key)


def _timer(step: Block, timer: str) -> float:
    value = step.values[f"Timing/{timer}"]
    assert isinstance(value, float)
    return value


def test_what_a_row_does_not_print_is_refused_and_so_is_a_row_that_contradicts_itself() -> None:
    with pytest.raises(Refused, match="no `gen` is printed"):
        STAGES["marin_sync"].need("gen")
    with pytest.raises(Refused, match="no stage is printed"):
        STAGES["marin_sync"].stages()
    with pytest.raises(Refused, match="stage_exceeds_step"):
        STAGES["verl_fa_7b_async_32"].need("wait")
    assert Row("sound", "", {"gen": 2, "other": 1, "update_actor": 3}).training == 4
