"""Reports about tokens, times, devices and memory: the divisors of rates, and what clocks left out (A11 to A18)."""

from pathlib import Path
from typing import Any

import pytest

from harness.audit.own import cases_of_cell, own_findings
from harness.audit.readings import readings
from tests.audit.test_own import measured
from tests.bug_reports.toys import SMALL, case, cell, found
from tests.measure.loops import at, figures, loop_cell

CUTS = [
    ([5, 7, 7, 3], 100, 0.5),
    ([2, 2, 2, 2], 8, 1.0),
    ([9, 1, 1, 1], 16, 0.25),
    ([6, 6, 5, 4], 12, 0.5),
    ([3, 3, 3, 1], 4, 0.75),
    ([8, 8, 7, 8], 9, 0.75),
]


@pytest.mark.parametrize(("lengths", "cap", "printed"), CUTS)
def test_a11_clip_ratio_against_padding(tmp_path: Path, lengths: list[int], cap: int, printed: float) -> None:
    """verl#7817 and PR#7821, 2026-09-10: responses were held against the width of the padded batch, so that the longest
    of every batch counted as cut, though the limit was far away."""
    several = {f"response_length:{place}": float(length) for place, length in enumerate(lengths)}
    recounted = found(several | {"length_cap": cap, "clipped_share": printed})["clipped_below_limit"]
    assert f"{printed:g} said to be cut, 0 of 4" in recounted.evidence
    assert "clipped_below_limit" in found(
        {"response_length_max": max(lengths), "length_cap": cap, "clipped_share": 0.5}
    )
    assert not found(several | {"length_cap": cap, "clipped_share": 0.0})
    ours = cell(tmp_path, {"max_tokens": cap}, lengths=lengths)
    assert ours["truncated_share"].value == 0.0
    assert ours["completion_length_max"].value == max(lengths)


SPLITS = [
    (1e6, 100, 8, 8),
    (2e6, 50, 16, 16),
    (3.2e5, 20, 4, 12),
    (7.7e5, 31, 96, 32),
    (1e5, 10, 1, 7),
    (5e6, 200, 2, 2),
]


@pytest.mark.parametrize(("tokens", "seconds", "trainers", "rollouts"), SPLITS)
def test_a12_rollout_devices_left_out(tokens: float, seconds: float, trainers: int, rollouts: int) -> None:
    """verl PR#7049, 2026-07-15: the rate of a device was divided by the trainer's devices alone; 1,250 in place of 625
    tokens/s for 8 and 8."""
    numbers = {"total_tokens": tokens, "step_seconds": seconds, "devices_declared": trainers + rollouts}
    printed = tokens / seconds / trainers
    finding = found(numbers | {"tokens_per_second_per_device": printed})["devices_left_out"]
    assert f"divided by {trainers:.4g} devices, the run has {trainers + rollouts}" in finding.evidence
    right = tokens / seconds / (trainers + rollouts)
    assert f"{right:.6g} tokens/s for each" in finding.evidence
    assert not found(numbers | {"tokens_per_second_per_device": right})


TOTALS = [
    (4 * 8 * 4096, 1.93, 8),
    (8 * 2048, 0.5, 2),
    (16 * 8192, 3.3, 16),
    (1_000_000, 10.0, 64),
    (65536, 2.0, 4),
    (300, 1.0, 3),
]


@pytest.mark.parametrize(("tokens", "seconds", "devices"), TOTALS)
def test_a13_a_total_under_the_name_of_a_device(tokens: float, seconds: float, devices: int) -> None:
    """axolotl#3362, 2026-01-19: 67,913 tokens/s logged for each GPU were those of all eight; right are 8,489."""
    numbers = {"total_tokens": tokens, "step_seconds": seconds, "devices_declared": devices}
    total = tokens / seconds
    finding = found(numbers | {"tokens_per_second_per_device": total})["devices_left_out"]
    assert f"divided by 1 devices, the run has {devices}" in finding.evidence
    assert f"({total / devices:.6g} tokens/s for each of them)" in finding.evidence
    both = {"tokens_per_second": total, "tokens_per_second_per_device": total, "devices_declared": devices}
    assert list(found(both)) == ["total_is_not_its_devices"]
    assert not found(both | {"tokens_per_second_per_device": total / devices})


WAITS = [
    ((7.47, 128 * 104.9), (0.58, 128 * 104.3), 3326),
    ((10.0, 10_000), (0.5, 10_000), 1905),
    ((60.0, 90_000), (2.0, 90_000), 2903),
    ((30.0, 60_000), (1.0, 50_000), 3548),
    ((100.0, 1e6), (0.1, 1e6), 19980),
    ((8.0, 800), (1.0, 900), 188.9),
]


@pytest.mark.parametrize(("slow", "fast", "joint"), WAITS)
def test_a14_tokens_of_rollouts_in_flight(slow: tuple[float, float], fast: tuple[float, float], joint: float) -> None:
    """prime-rl PR#2048, 2026-03-19: 23,525.9 tokens/s in 0.58 s, of rollouts that the step before had generated; over
    both steps they are 3,326."""
    numbers = [{"step_seconds": seconds, "tokens_per_second": tokens / seconds} for seconds, tokens in (slow, fast)]
    finding = found(numbers[1], earlier=numbers[0])["rate_of_a_wait"]
    assert f"over both steps the rate is {joint:.4g} tokens/s" in finding.would_be_true_if
    assert not found(numbers[0], earlier=numbers[0])


FLOPS = [(2.7381, 8), (1.018, 4), (1.6, 2), (7.9, 8), (25.0, 64), (1.0001, 3)]


@pytest.mark.parametrize(("mfu", "devices"), FLOPS)
def test_a15_an_mfu_beyond_the_peak(mfu: float, devices: int) -> None:
    """NeMo-RL#955, 2025-08-20: an MFU of 273.81 %, and operations of one rank printed as those of all."""
    assert list(found({"mfu": mfu})) == ["mfu_over_one"]
    assert not found({"mfu": mfu / 30})
    same = {"flops_per_second": 1e14, "flops_per_second_per_device": 1e14, "devices_declared": devices}
    assert list(found(same)) == ["total_is_not_its_devices"]
    assert not found(same | {"flops_per_second": 1e14 * devices})


@pytest.mark.parametrize(("named", "wall"), [(45, 95), (10, 60), (0.5, 1.0), (300, 350), (20, 20.5), (1, 51)])
def test_a15_time_in_no_timer_is_told(named: float, wall: float) -> None:
    """NeMo-RL#955: about 50 s a step were in none of the timers."""
    told = readings(case({"step_seconds": wall, "stage_seconds:train": named}))
    assert told["unnamed_seconds"] == pytest.approx(wall - named)
    assert told["unnamed_share"] == pytest.approx((wall - named) / wall)


def test_a15_in_a_ledger_of_ours(tmp_path: Path) -> None:
    """NeMo-RL#955: 5 of the 100 ms of a step are in no span, and that is a figure of its own."""
    assert figures(loop_cell(tmp_path))["unattributed_share"].value == pytest.approx(10 / 295)


FILLS = [(300, 60, 1), (500, 60, 2), (1000, 100, 4), (30, 10, 3), (90, 1, 10), (200, 399, 1)]


@pytest.mark.parametrize(("fill", "step", "steps"), FILLS)
def test_a16_the_first_fill_of_a_buffer(fill: float, step: float, steps: int) -> None:
    """NeMo-RL PR#3955, 2026-09-01: the first asynchronous step was printed as 60 s, and 300 s of filling the buffer
    before it as nothing; right is 360."""
    whole = fill + steps * step
    printed = found({"run_seconds": whole, "steps": steps, "step_seconds": step})
    assert ("time_outside_steps" in printed) == (fill > whole / 3)
    if printed:
        assert f"{fill:.6g} s in none" in printed["time_outside_steps"].evidence
    assert not found({"run_seconds": whole, "steps": steps, "step_seconds": whole / steps})


def test_a16_in_a_ledger_of_ours(tmp_path: Path) -> None:
    """NeMo-RL PR#3955: our clock of the whole run begins with the first batch, so that two batches that are generated
    before the first step lengthen the run by their time."""
    runs = [cell(tmp_path / str(ahead), ahead=ahead)["run_seconds"].value or 0.0 for ahead in (0, 2)]
    assert runs[1] > runs[0]


ENGINE = [(4, 2), (9, 8), (100, 64), (17, 16), (3, 1), (1025, 1024)]


@pytest.mark.parametrize(("engine", "cap"), ENGINE)
def test_a17_lengths_before_the_cut(tmp_path: Path, engine: int, cap: int) -> None:
    """SkyRL#763, 2025-12-09, PR#1821, 2026-06-21: the engine returned 4 tokens where 2 were the limit and were trained
    on, and lengths were those of the engine."""
    assert list(found({"response_length_max": engine, "length_cap": cap})) == ["length_over_cap"]
    assert list(found({"response_length:0": engine, "response_length:1": 1, "length_cap": cap})) == ["length_over_cap"]
    assert not found({"response_length_max": cap, "length_cap": cap})
    cut = measured(tmp_path, SMALL | {"max_tokens": cap}, lengths=[engine])
    assert cut.figures["completion_length_max"] == cut.given["length_cap"] == cap
    assert "length_over_cap" not in {finding.rule for finding in own_findings(cases_of_cell(cut))}


MEMORY = [  # allocated, reserved, used by the driver, of the card; what is found
    (5.2, 198.68, 120, 140, {"memory_over_card"}),
    (5.2, 7.8, 23.7, 24, set()),
    (7.8, 5.2, 8.0, 24, {"allocated_over_reserved"}),
    (204.9, 210.0, 80.0, 141, {"memory_over_card"}),
    (60, 70, 81, 80, {"memory_over_card"}),
    (79.9, 80.0, 80.0, 80, set()),
]


@pytest.mark.parametrize(("allocated", "reserved", "used", "card", "wrong"), MEMORY)
def test_a18_three_memories_of_a_device(
    tmp_path: Path, allocated: float, reserved: float, used: float, card: float, wrong: set[str]
) -> None:
    """vllm#33625, 2026-02-03: 198.68 GB reserved on a card of 140 after the engine slept. prime-rl#1118 and PR#1126,
    2025-10-18: a peak of 5.2 or 7.8 GiB by which of the allocator's counters is read. Three columns, never one."""
    sizes = {"memory_allocated": allocated, "memory_reserved": reserved, "memory_used": used, "memory_card": card}
    assert set(found({name: size * 1e9 for name, size in sizes.items()})) == wrong
    sources = {"cuda_allocated": allocated, "cuda_reserved": reserved, "nvml": used}
    common: dict[str, Any] = {"t": at(1, 50), "pid": 1, "phase": None, "component": "device:0"}
    rows = [common | {"source": source, "bytes": int(size * 1e9)} for source, size in sources.items()]
    seen = figures(loop_cell(tmp_path, memory=rows))
    assert {source: seen[f"device_memory_peak_bytes[{source}]"].value for source in sources} == pytest.approx(
        {source: size * 1e9 for source, size in sources.items()}
    )
