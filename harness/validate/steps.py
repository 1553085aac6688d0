"""What the closed formulas say of a step, beside published steps [12.3.1]."""

from collections.abc import Callable, Iterator, Sequence

from harness.theory.pipeline import exposed_period, overlapped_period, sequential_period
from harness.validate.outcome import Check, Outcome, attempt
from harness.validate.table import Row, published

SYNC = "sync"
ASYNC_BLOCK = "nemo_pr1052_async"
ONE_OFF = ("verl_1so_fsdp_async", "verl_1so_meg_async")
FITTED_ASYNC = "verl_fa_7b_async_64"
"""The first row of its page that the audit lets pass."""
PAIRS = (
    ("verl_fa_7b_sync_32", "verl_fa_7b_async_32"),
    ("verl_fa_7b_sync_64", "verl_fa_7b_async_64"),
    ("verl_fa_7b_sync_128", "verl_fa_7b_async_128"),
    ("verl_fa_30b_sync", "verl_fa_30b_async"),
    ("verl_fa_retool_sync", "verl_fa_retool_async"),
    ("verl_fa_validate_sync", "verl_fa_validate_async"),
    ("verl_1so_fsdp_sync", "verl_1so_fsdp_async"),
    ("verl_1so_meg_sync", "verl_1so_meg_async"),
    ("marin_sync", "marin_async_every_update"),
    ("marin_sync", "marin_async_every_second"),
)
"""A synchronous run, and an asynchronous one on as many GPUs."""


def _each(names: Sequence[str], predict: Callable[[Row], Check]) -> list[Outcome]:
    return [attempt(name, lambda name=name: predict(published().stages[name])) for name in names]  # type: ignore[misc]


def plus(parts: Sequence[float]) -> str:
    """A sum in words."""
    return " + ".join(f"{part:g}" for part in parts)


def sequential() -> list[Outcome]:
    """`C_seq` from the printed stages of synchronous steps, and of a trainer's asynchronous step, in which the wait
    stands for the rollout."""
    names = [row.name for row in published().stages.values() if row.values["mode"] == SYNC and "step" in row.values]
    return _each([*names, ASYNC_BLOCK], _sequential)


def _sequential(row: Row) -> Check:
    rollout, stages = row.need("wait" if row.name == ASYNC_BLOCK else "gen"), row.stages()
    parts = [rollout, *(seconds for stage, seconds in stages.items() if stage != "gen")]
    return Check(row.name, plus(parts), sequential_period(rollout, row.training), row.need("step"))


def one_off_rest(row: Row) -> float:
    """`s`: the step less `max(G, T)`, where the rollout beside the trainer was timed."""
    return row.need("step") - overlapped_period(row.need("generate_sequences"), row.training)


def one_step_off() -> list[Outcome]:
    """Each row with the `s` of the other, then both with their common mean."""
    rows = [published().stages[name] for name in ONE_OFF]
    rests = [one_off_rest(row) for row in rows]
    swapped = [_one_off(row, rest, other.name) for row, rest, other in zip(rows, rests[::-1], rows[::-1], strict=True)]
    return [*swapped, *(_one_off(row, sum(rests) / 2, "both rows") for row in rows)]


def _one_off(row: Row, rest: float, fitted: str) -> Check:
    rollout, train = row.need("generate_sequences"), row.training
    told = f"max({rollout:g}, {train:g}) + {rest:g}"
    return Check(row.name, told, exposed_period(rollout, train, rest), row.need("step"), fitted)


def waiting() -> list[Outcome]:
    """`wait + T + s` of asynchronous steps with one `s`, fitted on the first sound row of the page."""
    rows = published().stages.values()
    names = [row.name for row in rows if row.values["mode"] == "fully_async" and "step" in row.values]
    return _each(names, _waiting)


def async_rest() -> float:
    """`s` of the row that it is fitted on: the step less wait and training."""
    row = published().stages[FITTED_ASYNC]
    return row.need("step") - row.need("wait") - row.training


def _waiting(row: Row) -> Check:
    wait, train, rest = row.need("wait"), row.training, async_rest()
    told = f"{wait:g} + {train:g} + {rest:.2f}"
    return Check(row.name, told, exposed_period(wait + train, train, rest), row.need("step"), FITTED_ASYNC)


def one_stage_changed() -> list[Outcome]:
    """Speculative decoding: the step with the rollout and the training that were measured with it, all else kept; then
    with the rollout alone; then with the rollout over the accepted length."""
    base, fast = published().stages["skyrl_mtp_base"], published().stages["skyrl_mtp"]
    rollout, rest = base.need("gen"), base.need("step") - base.need("gen") - base.need("update_actor")
    asked = (
        ("measured rollout and training", fast.need("gen"), fast.need("update_actor")),
        ("measured rollout", fast.need("gen"), base.need("update_actor")),
        ("rollout over the accepted length", rollout / fast.need("accepted"), base.need("update_actor")),
    )
    return [
        Check(name, f"{gen:.4g} + {train:g} + {rest:.3g}", sequential_period(gen, train + rest), fast.need("step"))
        for name, gen, train in asked
    ]


def from_sync_alone() -> list[Outcome]:
    """The asynchronous step from the synchronous run: both stages scale linearly to the GPUs of the printed split."""
    return [attempt(name, lambda pair=(sync, name): _linear(*pair)) for sync, name in PAIRS]  # type: ignore[misc]


def _linear(sync_name: str, name: str) -> Check:
    sync, row = published().stages[sync_name], published().stages[name]
    row.must_be_sound()
    rollout, train = sync.need("gen"), sync.training
    gpus, (rolling, training) = sync.need("gpus"), row.values["split"]
    at = rollout * gpus / rolling, train * gpus / training
    told = f"max({rollout:g} x {gpus:g}/{rolling}, {train:g} x {gpus:g}/{training})"
    return Check(name, told, overlapped_period(*at), row.need("step"))


def signs() -> Iterator[tuple[str, float, Outcome]]:
    """Asynchronous over synchronous step: name, reported, and what the asynchronous run's own wait, stages and `s`
    give. Of marin, whose times are of the run, `s` is the printed synchronisation."""
    for sync_name, name in PAIRS:
        sync, row = published().stages[sync_name], published().stages[name]
        key = "step" if "step" in row.values else "core_s"
        reported = float(row.values[key]) / float(sync.values[key])
        yield name, reported, attempt(name, lambda row=row, base=float(sync.values[key]): _own(row, base))  # type: ignore[misc]


def _own(row: Row, base: float) -> Check:
    if "core_s" in row.values:
        train, wait, rest = (row.need(key) for key in ("train_s", "wait_s", "weight_sync_s"))
        whole, fitted = row.need("core_s"), ""
    else:
        wait, train, whole = row.need("wait"), row.training, row.need("step")
        one_off = row.values["mode"] == "one_step_off"
        rest, fitted = (_other_rest(row), "the other row") if one_off else (async_rest(), FITTED_ASYNC)
        if one_off:
            wait = max(row.need("generate_sequences") - train, 0.0)
    told = f"({wait:g} + {train:g} + {rest:.4g}) / {base:g}"
    return Check(row.name, told, exposed_period(wait + train, train, rest) / base, whole / base, fitted)


def _other_rest(row: Row) -> float:
    (other,) = [name for name in ONE_OFF if name != row.name]
    return one_off_rest(published().stages[other])
