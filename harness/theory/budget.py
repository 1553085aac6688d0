"""A device's memory over a cycle, by component: B(t) and its peak [12.2.4]. Bytes; every sum is a lower bound, since
allocator, collectives' buffers and graphs are in none of it."""

from dataclasses import dataclass
from typing import ClassVar

from harness.errors import UserError
from harness.theory.activations import RECOMPUTE, activation_bytes, logits_bytes
from harness.theory.architecture import Architecture, Attention, Experts
from harness.theory.memory import StateProfile, rank_bytes, state_bytes

PHASES = ("rollout", "transition", "training", "synchronisation")
EXACT, APPROXIMATE = "exact", "approximate"


@dataclass(frozen=True)
class Ask:
    """What a budget is asked for.

    Attributes:
        ranks: D, over which parameters, gradients and optimizer state are sharded; 1 is no sharding.
        tensor_parallel: devices that one engine replica spans.
        lora_rank: of an adapter on every matrix; 0 trains all weights.
        sequences, tokens: active in one engine replica, and what each retains.
        kv_bytes, engine_bytes, compute_bytes: of an element of the cache, of the engine's weights, of activations.
        micro_sequences, micro_tokens: of one microbatch of training on one rank, padded.
        recompute: none, selective or full.
        sleep: what the engine gives up while the trainer works: nothing, its `kv` cache, or its `weights` too.
        offload: what the trainer gives up while the engine works: nothing, its `optimizer` state, or `all`.
        card: bytes of a device; `utilisation`: the share of it that may be used.
    """

    ranks: int
    tensor_parallel: int
    lora_rank: int
    sequences: int
    tokens: int
    kv_bytes: float
    engine_bytes: float
    compute_bytes: float
    micro_sequences: int
    micro_tokens: int
    recompute: str
    sleep: str
    offload: str
    card: float | None
    utilisation: float
    POSITIVE: ClassVar = ("ranks", "tensor_parallel", "card")
    SHARES: ClassVar = ("utilisation",)
    CHOICES: ClassVar = {
        "recompute": RECOMPUTE,
        "sleep": ("nothing", "kv", "weights"),
        "offload": ("nothing", "optimizer", "all"),
    }


@dataclass(frozen=True)
class Line:
    """One component: its bytes on one device, how sure they are, and the formula."""

    name: str
    bytes: float
    grade: str
    formula: str


def check_sharding(shape: Architecture, ask: Ask) -> None:
    """Refuse what cannot be split so.

    Raises:
        UserError: names the dimension.
    """
    if ask.ranks > shape.hidden:
        raise UserError(
            f"ranks={ask.ranks}: the model cannot shard over so many: its matrices have rows for {shape.hidden} at most"
        )
    parts = ask.tensor_parallel
    for layer in shape.layers:
        attention, mlp = layer.attention, layer.feed_forward
        inner = mlp.expert.inner if isinstance(mlp, Experts) else mlp.inner
        sizes = {"num_attention_heads": attention.heads, "the MLP's inner size": inner}
        for name, size in sizes.items():
            if size % parts:
                raise UserError(f"tensor_parallel={parts}: the model cannot shard over so many: {name} is {size}")
        kv_heads = attention.kv_heads if isinstance(attention, Attention) else parts
        if kv_heads % parts and parts % kv_heads:
            raise UserError(
                f"tensor_parallel={parts}: the model cannot shard over so many: num_key_value_heads is {kv_heads}"
            )


def lines_of(shape: Architecture, profile: StateProfile, ask: Ask) -> dict[str, Line]:
    """Every component on one device.

    Raises:
        UserError: the model cannot be sharded so.
    """
    check_sharding(shape, ask)
    count = shape.parameters
    adapter = shape.adapter(ask.lora_rank) if ask.lora_rank else 0
    frozen = state_bytes(profile, count, 0) if adapter else 0.0
    trained = state_bytes(profile, adapter) if adapter else state_bytes(profile, count)
    own_weights = profile.param * (adapter or count)
    kv = ask.sequences * shape.cached(ask.tokens) * ask.kv_bytes
    largest = shape.largest_module * profile.param * (1 if ask.ranks > 1 else 0)
    work = activation_bytes(shape, ask.micro_sequences, ask.micro_tokens, ask.compute_bytes, ask.recompute)
    logits = logits_bytes(shape, ask.micro_sequences, ask.micro_tokens, ask.compute_bytes)
    engine = count * ask.engine_bytes / ask.tensor_parallel
    moved = adapter * profile.param if adapter else shape.largest_module * ask.engine_bytes
    shard = f"/ {ask.ranks} ranks"
    found = [
        Line("trainer_weights", rank_bytes(frozen + own_weights, ask.ranks), EXACT, f"N b_param {shard}"),
        Line(
            "trainer_state", rank_bytes(trained - own_weights, ask.ranks), EXACT,
            f"N_trained (b_grad + b_m1 + b_m2 + b_master) {shard}",
        ),
        Line("gathered_module", largest, APPROXIMATE, "the largest module, whole, while it is computed"),
        Line("activations", work, APPROXIMATE, f"Korthikanti et al. 2022, recompute {ask.recompute}"),
        Line("logits", logits, APPROXIMATE, "s T V (b + 4 + 4)"),
        Line("engine_weights", engine, EXACT, f"N b / {ask.tensor_parallel} devices"),
        Line("kv_cache", kv / _kv_split(shape, ask.tensor_parallel), EXACT, "what each layer retains, x sequences x b"),
        Line("transfer_buffer", moved, APPROXIMATE, "the largest module (or the adapter) on its way to the engine"),
    ]  # fmt: skip
    return {line.name: line for line in found}


def _kv_split(shape: Architecture, parts: int) -> int:
    """By how many devices the cache is divided: a latent one is held by each, and a head is never split."""
    kinds = [layer.attention for layer in shape.layers]
    return min((min(parts, kind.kv_heads) if isinstance(kind, Attention) else 1) for kind in kinds)


def timeline(ask: Ask) -> dict[str, list[str]]:
    """Which components are there in each phase of a colocated cycle [12.2.4]."""
    trainer_asleep = {"nothing": ["trainer_weights", "trainer_state"], "optimizer": ["trainer_weights"], "all": []}
    engine_asleep = {"nothing": ["engine_weights", "kv_cache"], "kv": ["engine_weights"], "weights": []}
    trainer = ["trainer_weights", "trainer_state"]
    return {
        "rollout": [*trainer_asleep[ask.offload], "engine_weights", "kv_cache"],
        "transition": [*trainer, *engine_asleep[ask.sleep]],
        "training": [*trainer, "gathered_module", "activations", "logits", *engine_asleep[ask.sleep]],
        "synchronisation": [*trainer, "gathered_module", "transfer_buffer", *_awake(engine_asleep[ask.sleep])],
    }


def _awake(asleep: list[str]) -> list[str]:
    """The engine needs its weights to take new ones up."""
    return asleep if "engine_weights" in asleep else ["engine_weights", *asleep]


def pools(ask: Ask, *, colocated: bool) -> dict[str, list[str]]:
    """By phase (colocated) or by pool (disaggregated: their sums meet on no device), the components on one device."""
    if colocated:
        return timeline(ask)
    trainer = ["trainer_weights", "trainer_state", "gathered_module", "activations", "logits", "transfer_buffer"]
    return {"training": trainer, "rollout": ["engine_weights", "kv_cache", "transfer_buffer"]}


def total(lines: dict[str, Line], names: list[str]) -> float:
    """B(t) while these are there."""
    return sum(lines[name].bytes for name in names)
