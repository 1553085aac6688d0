"""What `adapter.yaml` and `fidelity.py` say of verl's figures and constants, held to verl's own functions."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import verl
import yaml
from tensordict import TensorDict
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, compute_policy_loss_vanilla, kl_penalty
from verl.trainer.ppo.metric_utils import compute_data_metrics, compute_throughout_metrics, compute_timing_metrics
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_rejection_mask
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.utils.flops_counter import _DEVICE_FLOPS
from verl.utils.tracking import Tracking
from verl.workers.config import FSDPActorConfig

from adapters.verl.fidelity import DUAL_CLIP_OFF
from adapters.verl.native import LogShape, log_file, native_figures

SPEC = yaml.safe_load((Path(__file__).parents[4] / "adapters/verl/adapter.yaml").read_text(encoding="utf-8"))
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in Path(verl.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("axis", SPEC["axes"])
def test_the_source_of_an_axis_is_in_the_installed_package(axis: str) -> None:
    paths = re.findall(r"verl/[\w/.]+", SPEC["axes"][axis]["source"])
    assert paths
    assert all((Path(verl.__file__).parents[1] / path).exists() for path in paths), paths


def batch(lengths: list[int], prompt: int = 3) -> DataProto:
    """Completions of these lengths to prompts of one length, padded to the longest of them as V1 does."""
    width, rows = max(lengths), len(lengths)
    mask = (torch.arange(width)[None] < torch.tensor(lengths)[:, None]).float()
    tensors = {
        "prompts": torch.ones(rows, prompt, dtype=torch.long),
        "responses": torch.ones(rows, width, dtype=torch.long),
        "response_mask": mask,
        "token_level_scores": mask / mask.sum(-1, keepdim=True),
        "token_level_rewards": mask / mask.sum(-1, keepdim=True),
        "advantages": mask,
        "returns": mask,
        "prompt_length": torch.full((rows,), float(prompt)),
        "response_length": mask.sum(-1),
    }
    tokens = [prompt + length for length in lengths]
    return DataProto(batch=TensorDict(tensors, batch_size=rows), meta_info={"global_token_num": tokens})


@pytest.mark.parametrize("key", [said["key"] for said in SPEC["native"]])
def test_verls_source_writes_a_figure_of_that_name(key: str) -> None:
    prefix, _, name = key.partition("/")
    written = {
        "timing_s": rf"marked_timer\(\s*\"(timing_s/)?{name}\"|timing_raw\[\"{name}\"\]",
        "actor": rf"\"(actor/)?{name}\"",
        "rollout_corr": rf"\"{name}\"",
    }
    literal = re.escape(f'"{key}"') + "|" + re.escape(f'/{key.rpartition("off_policy/")[2]}"')
    assert re.search(written.get(prefix, literal), SOURCE), f"{key} is nowhere in the installed verl"


def test_throughput_counts_a_prompt_once_for_each_completion() -> None:
    said = compute_throughout_metrics(batch([2, 4]), {"step": 0.5}, n_gpus=2)
    assert said["perf/total_num_tokens"] == 3 + 2 + 3 + 4
    assert said["perf/throughput"] == pytest.approx(12 / (0.5 * 2))
    assert said["perf/time_per_step"] == 0.5


def test_clip_ratio_compares_with_the_longest_of_the_batch() -> None:
    said = compute_data_metrics(batch([2, 4, 3, 4]), use_critic=False)
    assert said["response_length/clip_ratio"] == 0.5
    assert said["response_length/mean"] == pytest.approx(13 / 4)
    assert said["critic/rewards/mean"] == pytest.approx(1.0)


def test_a_timer_that_names_its_prefix_gets_it_twice() -> None:
    said = compute_timing_metrics(batch([2]), {"timing_s/param_sync": 0.1, "gen": 2.0})
    assert {"timing_s/timing_s/param_sync", "timing_s/gen"} <= said.keys()


def test_probs_diff_is_of_probabilities() -> None:
    engine, trainer = torch.tensor([[-6.0, -6.0]]), torch.tensor([[-6.1, -6.0]])
    tensors = {"rollout_log_probs": engine, "old_log_probs": trainer, "response_mask": torch.ones(1, 2)}
    tensors["responses"] = torch.ones(1, 2, dtype=torch.long)
    said = calculate_debug_metrics(DataProto(batch=TensorDict(tensors, batch_size=1)))
    assert said["training/rollout_probs_diff_max"] == pytest.approx(float(engine.exp()[0, 0] - trainer.exp()[0, 0]))
    assert said["training/rollout_probs_diff_max"] < 1e-3


def corrected(**settings: Any) -> dict[str, float]:
    engine, old = torch.tensor([[-1.0, -1.0, -3.0]]), torch.tensor([[-1.0, -1.5, -1.0]])
    mask = torch.ones(1, 3)
    said: dict[str, float] = compute_rollout_correction_and_rejection_mask(old, engine, mask, **settings)[2]
    return said


def test_k1_and_k3_are_means_over_tokens() -> None:
    said = corrected()
    ratio = np.array([0.0, -0.5, 2.0])
    assert said["rollout_corr/kl"] == pytest.approx(-ratio.mean())
    assert said["rollout_corr/k3_kl"] == pytest.approx((np.exp(ratio) - 1 - ratio).mean(), rel=1e-5)
    assert "rollout_corr/rollout_is_eff_sample_size" not in said


def test_effective_sample_size_is_a_share_of_truncated_weights() -> None:
    w = np.minimum(np.exp([0.0, -0.5, 2.0]), 2.0)
    said = corrected(rollout_is="token", rollout_is_threshold=2.0)
    expected = w.mean() ** 2 / (w**2).mean()
    assert said["rollout_corr/rollout_is_eff_sample_size"] == pytest.approx(expected, rel=1e-4)


def test_advantages_are_divided_by_the_std_of_n_minus_1_and_1e_6() -> None:
    rewards, mask = torch.tensor([[1.0], [0.0], [0.0], [0.0]]) * 1e-6, torch.ones(4, 1)
    found, _ = compute_grpo_outcome_advantage(rewards, mask, np.array(["a"] * 4, dtype=object))
    held = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64) * 1e-6
    expected = (held - held.mean()) / (held.std(correction=1) + 1e-6)
    assert found[:, 0].tolist() == pytest.approx(expected.tolist(), rel=1e-4)


def policy_loss(ratio: float, advantage: float, clip_c: float) -> tuple[float, dict[str, Any]]:
    config = FSDPActorConfig(strategy="fsdp2", rollout_n=2, ppo_micro_batch_size_per_gpu=1, clip_ratio_c=clip_c)
    log_prob = torch.tensor([[float(np.log(ratio))]])
    loss, said = compute_policy_loss_vanilla(
        torch.zeros(1, 1), log_prob, torch.full((1, 1), advantage), torch.ones(1, 1), "token-mean", config
    )
    return float(loss), said


def test_dual_clip_is_out_of_reach_where_fidelity_says_so() -> None:
    assert policy_loss(10.0, -1.0, 3.0)[0] == pytest.approx(3.0)
    assert policy_loss(10.0, -1.0, DUAL_CLIP_OFF)[0] == pytest.approx(10.0, rel=1e-5)


@pytest.mark.parametrize(
    ("ratio", "advantage", "binds"), [(1.5, 1.0, 1), (1.5, -1.0, 0), (0.5, -1.0, 1), (0.5, 1.0, 0)]
)
def test_pg_clipfrac_counts_where_the_clip_binds(ratio: float, advantage: float, binds: int) -> None:
    assert policy_loss(ratio, advantage, 1e6)[1]["actor/pg_clipfrac"] == binds


def test_kl_is_k3_and_held_within_ten() -> None:
    found = kl_penalty(torch.tensor([0.0, -5.0]), torch.tensor([0.5, 0.0]), "low_var_kl")
    assert found.tolist() == pytest.approx([float(np.exp(0.5) - 0.5 - 1), 10.0], rel=1e-5)


def test_any_cpu_is_taken_for_one_of_448_gigaflops() -> None:
    assert _DEVICE_FLOPS["CPU"] == 448e9


def test_what_the_file_logger_writes_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens its file anew: an attempt that had the file of the one before would have nothing of it left."""
    path = tmp_path / log_file(0)
    path.parent.mkdir()
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(path))
    for loss in (np.float32(0.5), np.float64(0.25)):
        tracking = Tracking("project", "experiment", ["file"], config={})
        tracking.log({"training/global_step": 1, "actor/loss": loss, "critic/score/mean": float("nan")}, step=1)
        tracking.finish()
    figures = native_figures(tmp_path, LogShape(1))
    assert figures == [(0, "training/global_step", 1.0), (0, "actor/loss", 0.25)]


def test_fully_async_logs_a_version_before_it_counts_the_update_that_made_it() -> None:
    from verl.experimental.fully_async_policy.fully_async_trainer import FullyAsyncTrainer

    step = inspect.getsource(FullyAsyncTrainer.__ray_metadata__.modified_class.fit_step)
    assert step.index("_fit_log_aggregated_training_metrics") < step.index("_fit_postprocess_step")
    hand_over = inspect.getsource(FullyAsyncTrainer.__ray_metadata__.modified_class._fit_update_weights)
    assert "self.logger.log(" in hand_over  # the rollouter's line
