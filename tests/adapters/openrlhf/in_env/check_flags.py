"""The installed command line takes what we ask of it, in every layout, on a CPU and rendered for GPUs; what it makes of
that, read back, is the task."""

from pathlib import Path
from typing import Any

import pytest

from adapters.openrlhf.events import read_scalars
from adapters.openrlhf.flags import EVERY_FLAG, argv_of, flags_of
from adapters.openrlhf.held import settings_in_force
from adapters.openrlhf.parser import flag_drift, installed_parser, resolve
from adapters.openrlhf.shape import misfit
from tests.adapters.openrlhf.cells import FILES, cell_of

ASYNCHRONOUS = {"layout": "disaggregated_async"}
CELLS: dict[str, dict[str, Any]] = {
    "cpu": {},
    "cpu_async": ASYNCHRONOUS,
    "cpu_partial": ASYNCHRONOUS | {"options": {"partial_rollout": True}},
    "cpu_two_ranks": {"options": {"trainer_ranks": 2, "engines": 2}},
    "colocated": {"layout": "colocated_sync", "profile": "multi_gpu"},
    "colocated_alone": {"layout": "colocated_sync", "profile": "one_gpu"},
    "colocated_tensor_parallel": {
        "layout": "colocated_sync",
        "profile": "multi_gpu",
        "options": {"engine_parallel": 2, "trainer_parallel": 2},
    },
    "gpus": {"profile": "multi_gpu"},
    "gpus_async": ASYNCHRONOUS | {"profile": "multi_gpu"},
    "gpus_partial": ASYNCHRONOUS | {"profile": "multi_gpu", "options": {"partial_rollout": True}},
    "gpus_tensor_parallel": {"profile": "multi_gpu", "options": {"engine_parallel": 4, "trainer_parallel": 2}},
    "gpus_flash": {"profile": "multi_gpu", "options": {"attention": "flash_attention_2"}},
    **{f"zero_{stage}": {"profile": "multi_gpu", "options": {"zero_stage": stage}} for stage in range(4)},
}
TASKS: dict[str, dict[str, Any]] = {
    "usual": {},
    "several_updates": {"minibatches": 2, "inner_epochs": 2, "steps": 8},
    "kl": {"kl_beta": 0.05, "gradient_checkpointing": True},
    "other_loss": {"loss": "sequence_mean", "advantage_std": "none", "clip_high": 0.28, "lr_schedule": "linear"},
}
NOT_ASKED = {"std_ddof", "advantage_eps", "precision"}


def test_the_installed_version_has_every_flag() -> None:
    assert flag_drift(EVERY_FLAG) == []


def arguments_of(cell: dict[str, Any]) -> Any:
    assert misfit(cell) is None
    return resolve(argv_of(flags_of(cell, FILES)))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("task", TASKS)
def test_openrlhf_takes_the_flags_and_holds_the_task(cell: str, task: str) -> None:
    updates = TASKS[task].get("minibatches", 1) * TASKS[task].get("inner_epochs", 1)
    asked = cell_of(**CELLS[cell], lag_bound=2 * updates, **TASKS[task])
    wanted = asked["task"]
    asked["task"]["steps"] = FILES.rows // wanted["prompts_per_batch"] * updates
    sampling = {name: wanted[name] for name in ("max_tokens", "temperature", "top_p", "top_k", "min_p")}
    held = settings_in_force(arguments_of(asked), sampling | {"ignore_eos": False}, "torch.float32")
    for name in set(wanted) & set(held) - NOT_ASKED:
        assert (
            held[name] == pytest.approx(wanted[name]) if isinstance(wanted[name], float) else held[name] == wanted[name]
        )


def test_the_modes_are_what_the_layouts_say() -> None:
    colocated = arguments_of(cell_of(**CELLS["colocated"]))
    assert (colocated.train.colocate_all, colocated.vllm.enable_sleep, colocated.ds.enable_sleep) == (True, True, True)
    partial = arguments_of(cell_of(**CELLS["gpus_partial"]))
    assert (partial.train.async_enable, partial.train.partial_rollout_enable) == (True, True)
    assert partial.train.async_queue_size == 2
    assert partial.train.colocate_all is False


def test_what_we_leave_out_is_off() -> None:
    found = arguments_of(cell_of())
    assert found.actor.dual_clip is None
    assert found.actor.entropy_coef is None
    assert found.critic.model_name_or_path is None
    assert found.reward.remote_url == ["agent"]
    assert not found.algo.dynamic_filtering_enable
    assert not found.ds.packing_samples
    assert not found.vllm.enable_prefix_caching


def test_every_flag_of_the_actor_that_we_do_not_set_has_the_default_that_was_read() -> None:
    """A new flag that changes the work would come with a default of its own: this list then has to be read again."""
    known = {action.dest: action.default for action in installed_parser()._actions if action.dest.startswith("algo.")}
    assert known == {
        "algo.advantage.is_correction_level": "off",
        "algo.advantage.is_correction_mode": "mask",
        "algo.advantage.is_correction_gating": "ratio",
        "algo.advantage.is_correction_threshold": [0.5, 5.0],
        "algo.advantage.lambd": 1,
        "algo.advantage.gamma": 1,
        "algo.advantage.estimator": "gae",
        "algo.advantage.no_std_norm": False,
        "algo.kl.target": None,
        "algo.kl.horizon": 10000,
        "algo.kl.init_coef": 0.01,
        "algo.kl.estimator": "k1",
        "algo.kl.unbiased_gradient": False,
        "algo.kl.use_loss": False,
        "algo.dynamic_filtering_enable": False,
        "algo.dynamic_filtering_range": (0, 1),
    }


def test_what_torch_writes_for_tensorboard_is_read_back(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(log_dir=str(tmp_path))
    for step in (1, 2):
        writer.add_text("train/generated_samples", "a sample", step)
        writer.add_scalar("train/timing/step_total", 0.5 * step, step)
    writer.close()
    (file,) = tmp_path.glob("events.out.tfevents.*")
    assert [tuple(one) for one in read_scalars(file)] == [
        (1, "train/timing/step_total", 0.5),
        (2, "train/timing/step_total", 1.0),
    ]
