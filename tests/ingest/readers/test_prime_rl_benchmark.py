"""PRIME-RL's trainer benchmarks: which of them contradict themselves, and what a failure leaves."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.examine import examine
from harness.ingest.keymap import key_map
from harness.ingest.readers.prime_rl_benchmark import PrimeRlBenchmark
from harness.ingest.reading import Block
from tests import DATA

FILE = DATA / "real_logs" / "prime_rl" / "prime_rl_trainer_benchmark_baselines_2026-01.json"
READER = PrimeRlBenchmark()
NAMED = {5.25, 2.15, 2.05, 1.47, 1.38}
OTHERS = {1.19, 1.09, 1.05, 1.06, 1.2, 5.96, 1.92, 2.16}
"""All beyond what their own smallest and largest rates and steps allow."""


def read(data: bytes) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(READER.blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


def ratio(block: Block) -> float:
    """Positions of a step over its time, against the rate."""
    config = [block.values[f"config/{name}"] for name in ("micro_batches", "seq_len", "num_gpus")]
    positions = config[0] * config[1] * config[2]
    return positions / block.values["metrics/step_time/mean"] / block.values["metrics/throughput/mean"]


def test_sixty_records_of_which_seven_failed() -> None:
    found, warnings = read(FILE.read_bytes())
    assert READER.recognises(FILE.read_bytes()[:2000], FILE.name) is not None
    failed = [block for block in found if block.values["config/success"] == 0]
    assert (len(found), len(failed)) == (60, 7)
    assert {block.kind for block in found} == {"summary"}
    assert not any(key.startswith("metrics/") for block in failed for key in block.values)
    assert len({block.scope for block in found}) == 60
    assert [line for line, _ in warnings] == [615, 0]
    assert "OutOfMemory" in failed[0].words["config/error_reason"]
    assert FILE.read_text().splitlines()[614] == " {"


def test_most_rates_are_their_batches_and_the_outliers_are_found() -> None:
    found, _ = read(FILE.read_bytes())
    ratios = {block.line: ratio(block) for block in found if block.values["config/success"]}
    assert sum(abs(one - 1) <= 0.02 for one in ratios.values()) == 35
    done = examine([str(FILE)])
    accused = {f.where.line: f for f in done.findings}
    assert {f.rule for f in done.findings} == {"rate_is_not_its_batch"}
    assert len(accused) == 14
    assert {round(ratios[line], 2) for line in accused} == NAMED | OTHERS
    assert min(ratios[line] for line in accused) > 1.05
    assert max(one for line, one in ratios.items() if line not in accused) < 1.052  # within the spread of its steps


def test_every_key_is_known() -> None:
    found, _ = read(FILE.read_bytes())
    assert {key for block in found for key in block.values if key_map("prime_rl").meaning(key) is None} == set()


def test_a_record_alone_is_the_whole_file() -> None:
    record = json.loads(FILE.read_text())[0]
    del record["source_file"]
    found, warnings = read(json.dumps(record, indent=2).encode())
    assert [(block.line, block.scope) for block in found] == [(1, "")]
    assert ratio(found[0]) == pytest.approx(1.47, abs=0.005)
    assert warnings == []


@settings(max_examples=30)
@given(st.integers(0, 6000))
def test_a_cut_list_gives_its_whole_records(cut: int) -> None:
    text = FILE.read_bytes()
    everything, _ = read(text[:8000])
    found, warnings = read(text[:cut])
    assert found == everything[: len(found)]
    assert warnings


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_rubbish_never_raises(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    read(rubbish)
    read(b'{"config": 1, "metrics": 2}')
    read(b'[{"config": {"a": ' + rubbish)
