"""A device's budget: the lines, what a phase holds, and what cannot be sharded."""

from dataclasses import replace

import pytest

from harness.errors import UserError
from harness.theory.activations import activation_bytes, logits_bytes
from harness.theory.architecture import Architecture
from harness.theory.budget import PHASES, Ask, lines_of, pools, timeline, total
from harness.theory.hf_config import read_config
from harness.theory.memory import PROFILES

ASK = Ask(
    ranks=8,
    tensor_parallel=2,
    lora_rank=0,
    sequences=64,
    tokens=4096,
    kv_bytes=2,
    engine_bytes=2,
    compute_bytes=2,
    micro_sequences=1,
    micro_tokens=4096,
    recompute="none",
    sleep="kv",
    offload="nothing",
    card=None,
    utilisation=0.9,
)
SIXTEEN = PROFILES["adamw_bf16_master"]


@pytest.fixture
def llama() -> Architecture:
    return read_config("llama-3-8b")


def test_state_is_sixteen_bytes_a_parameter_over_the_ranks(llama: Architecture) -> None:
    lines = lines_of(llama, SIXTEEN, ASK)
    state = lines["trainer_weights"].bytes + lines["trainer_state"].bytes
    assert state == 16 * llama.parameters / 8
    assert lines["engine_weights"].bytes == llama.parameters
    assert lines["kv_cache"].bytes == 16 * 2**30


def test_lora_pays_for_the_adapter_and_keeps_the_base(llama: Architecture) -> None:
    lines = lines_of(llama, SIXTEEN, replace(ASK, ranks=1, lora_rank=16))
    adapter = llama.adapter(16)
    assert lines["trainer_weights"].bytes == 2 * (llama.parameters + adapter)
    assert lines["trainer_state"].bytes == 14 * adapter
    assert lines["transfer_buffer"].bytes == 2 * adapter


def test_the_cache_is_divided_by_heads_alone(llama: Architecture) -> None:
    sixteen = lines_of(llama, SIXTEEN, replace(ASK, tensor_parallel=16))["kv_cache"].bytes
    assert sixteen == 4 * 2**30
    latent = read_config("deepseek-v3")
    one, eight = (lines_of(latent, SIXTEEN, replace(ASK, tensor_parallel=parts))["kv_cache"].bytes for parts in (1, 8))
    assert one == eight


def test_the_peak_is_one_phase_and_not_the_sum(llama: Architecture) -> None:
    lines = lines_of(llama, SIXTEEN, ASK)
    sums = {phase: total(lines, names) for phase, names in timeline(ASK).items()}
    assert tuple(sums) == PHASES
    assert max(sums.values()) < sum(line.bytes for line in lines.values())
    asleep = replace(ASK, sleep="weights", offload="all")
    less = {phase: total(lines, names) for phase, names in timeline(asleep).items()}
    assert all(less[phase] <= sums[phase] for phase in PHASES)
    assert less["rollout"] == lines["engine_weights"].bytes + lines["kv_cache"].bytes


def test_disaggregated_pools_meet_on_no_device(llama: Architecture) -> None:
    found = pools(ASK, colocated=False)
    assert "kv_cache" not in found["training"]
    assert "trainer_state" not in found["rollout"]


def test_recomputation_keeps_less(llama: Architecture) -> None:
    kept = [activation_bytes(llama, 1, 4096, 2, how) for how in ("none", "selective", "full")]
    assert kept == sorted(kept, reverse=True)
    # Korthikanti et al.: about 34 s b h a layer in a 16-bit type, for an MLP of 4 h; this one's is gated and 3.5 h wide
    assert kept[0] == pytest.approx(34 * 4096 * 4096 * 32, rel=0.01)
    assert logits_bytes(llama, 1, 10, 2) == 10 * 128_256 * 10


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tensor_parallel": 3}, "num_attention_heads is 32"),
        ({"ranks": 5000}, "ranks=5000"),
    ],
)
def test_what_cannot_be_sharded_is_refused_by_name(llama: Architecture, change: dict[str, int], says: str) -> None:
    with pytest.raises(UserError, match=says):
        lines_of(llama, SIXTEEN, replace(ASK, **change))  # type: ignore[arg-type]


def test_heads_that_do_not_divide() -> None:
    with pytest.raises(UserError, match="num_attention_heads is 9"):
        lines_of(read_config("smollm2-135m"), SIXTEEN, replace(ASK, tensor_parallel=2))
