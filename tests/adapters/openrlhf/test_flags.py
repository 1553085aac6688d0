from pathlib import Path
from typing import Any

import pytest

from adapters.openrlhf.flags import EVERY_FLAG, Files, argv_of, flags_of
from harness.errors import UserError
from tests.adapters.openrlhf.cells import FILES, cell_of


def flags(**cell: Any) -> dict[str, Any]:
    return flags_of(cell_of(**cell), FILES)


def test_a_flag_without_a_value_an_absent_one_and_one_of_several_words() -> None:
    assert argv_of({"a.b": True, "c": False, "d": None, "e": (0.5, 5.0), "f": 0}) == [
        "--a.b",
        "--e",
        "0.5",
        "5.0",
        "--f",
        "0",
    ]


@pytest.mark.parametrize("layout", ["disaggregated_sync", "disaggregated_async"])
def test_the_list_of_all_flags_is_that(layout: str) -> None:
    assert set(flags(layout=layout)) == set(EVERY_FLAG)


@pytest.mark.parametrize(
    ("task", "options", "batch", "micro", "epochs"),
    [
        ({}, {}, 16, 16, 1),
        ({"minibatches": 2}, {}, 8, 8, 1),
        ({"minibatches": 2, "micro_batches": 2, "inner_epochs": 3}, {}, 8, 4, 3),
        ({"micro_batches": 2}, {"trainer_ranks": 2}, 16, 4, 1),
    ],
)
def test_batches_are_samples_of_a_step_and_micro_batches_those_of_a_rank(
    task: dict[str, int], options: dict[str, int], batch: int, micro: int, epochs: int
) -> None:
    found = flags(options=options, **task)
    assert (found["train.batch_size"], found["train.micro_batch_size"], found["train.max_epochs"]) == (
        batch,
        micro,
        epochs,
    )


def test_every_default_that_changes_the_work_is_pinned() -> None:
    found = flags()
    assert found["algo.kl.init_coef"] == 0.0
    assert found["algo.kl.use_loss"] is False
    assert found["actor.lr_scheduler"] == "constant"
    assert found["actor.lr_warmup_ratio"] == 0.0
    assert found["actor.adam.betas"] == (0.9, 0.999)
    assert found["algo.advantage.is_correction_level"] == "off"
    assert found["reward.clip_range"] == (-1e9, 1e9)
    assert not {"actor.dual_clip", "actor.entropy_coef"} & set(found)


def test_a_kl_term_is_a_loss_with_its_own_reference() -> None:
    found = flags(kl_beta=0.1)
    assert (found["algo.kl.init_coef"], found["algo.kl.use_loss"], found["algo.kl.estimator"]) == (0.1, True, "k3")
    assert found["train.colocate_actor_ref"] is True


def test_layouts() -> None:
    plain = flags()
    assert not plain["train.async_enable"]
    assert plain["train.async_queue_size"] is None
    asynchronous = flags(layout="disaggregated_async", options={"partial_rollout": True})
    assert (asynchronous["train.async_queue_size"], asynchronous["train.partial_rollout_enable"]) == (2, True)
    assert not asynchronous["vllm.enable_sleep"]
    colocated = flags(layout="colocated_sync", profile="multi_gpu")
    assert colocated["train.colocate_all"]
    assert colocated["vllm.enable_sleep"]
    assert colocated["ds.enable_sleep"]
    assert colocated["vllm.num_engines"] == colocated["actor.num_gpus_per_node"] == 8


def test_each_attempt_logs_into_a_folder_of_its_own_and_only_a_later_one_loads() -> None:
    first, second = flags(), flags(attempt=1)
    assert (first["logger.wandb.run_name"], first["ckpt.load_enable"]) == ("attempt_0", False)
    assert (second["logger.wandb.run_name"], second["ckpt.load_enable"]) == ("attempt_1", True)


@pytest.mark.parametrize(("every", "expected"), [(0, -1), (2, 2)])
def test_no_checkpoint_is_minus_one(every: int, expected: int) -> None:
    assert flags(options={"checkpoint": {"every": every, "keep": 3}})["ckpt.save_steps"] == expected


def test_a_cpu_runs_eagerly_and_flash_attention_packs() -> None:
    assert (flags()["ds.attn_implementation"], flags()["vllm.enforce_eager"]) == ("eager", True)
    on_gpu = flags(profile="one_gpu", layout="colocated_sync", options={"attention": "flash_attention_2"})
    assert (on_gpu["ds.attn_implementation"], on_gpu["ds.packing_samples"]) == ("flash_attention_2", True)
    assert not on_gpu["vllm.enforce_eager"]


@pytest.mark.parametrize("name", ["a,b", "a@b"])
def test_a_path_that_openrlhf_would_split_is_refused(name: str) -> None:
    files = Files(Path("/m"), Path("/runs") / name / "prompts.jsonl", 12, 5, Path("/a.py"))
    with pytest.raises(UserError, match="splits a path"):
        flags_of(cell_of(), files)
