"""The trainer's side on OpenRLHF's own trainer and DeepSpeed, in one process: what its records say is what was done."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from adapters.openrlhf.flags import Files, argv_of, flags_of
from adapters.openrlhf.hooks import patches_of
from adapters.openrlhf.imports import VARIABLE, in_force, install
from adapters.openrlhf.parser import resolve
from adapters.openrlhf.run import CPU_ENVIRONMENT, STAND_IN
from harness.probe.probe import CELL_VARIABLE
from tests.adapters.openrlhf.cells import cell_of

SAMPLES, PROMPT, RESPONSE = 8, 4, 5
TASK = {"prompts_per_batch": 2, "group_size": 4, "minibatches": 2, "micro_batches": 2, "inner_epochs": 2, "steps": 4}


def sequences() -> torch.Tensor:
    return torch.randint(2, 60, (SAMPLES, PROMPT + RESPONSE), generator=torch.Generator().manual_seed(0))


def advantage(sample: int) -> float:
    return float(sample - 3.5)


def model() -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM  # loads DeepSpeed, which is to be patched then

    torch.manual_seed(3)
    sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": True}
    return Qwen2ForCausalLM(Qwen2Config(**sizes, **heads, initializer_range=0.2)).eval()


def logprobs(module: Any) -> torch.Tensor:
    """Of the responses, samples x tokens."""
    ids = sequences()
    with torch.no_grad():
        found = module(input_ids=ids).logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    return found[:, PROMPT - 1 :]


def experience(sample: int, old: torch.Tensor) -> Any:
    """As OpenRLHF makes one of a completion."""
    from openrlhf.trainer.ppo_utils.experience import Experience

    ids = sequences()[sample : sample + 1]
    mask = torch.zeros(1, ids.shape[1] - 1, dtype=torch.long)
    mask[:, PROMPT - 1 :] = 1
    spread = torch.zeros(mask.shape)
    spread[:, PROMPT - 1 :] = old[sample]
    return Experience(
        sequences=ids,
        attention_mask=torch.ones_like(ids),
        action_mask=mask,
        action_log_probs=spread,
        advantages=mask * advantage(sample),
        returns=mask * advantage(sample),
        rewards=torch.tensor([0.0]),
        total_length=torch.tensor([float(ids.shape[1])]),
        response_length=torch.tensor([RESPONSE]),
        truncated=torch.tensor([False]),
        prompts=["p"],
        labels=[f"s{sample}"],
        images=[None],
        mm_train_inputs=[None],
        info={"reward": torch.tensor([0.0])},
    )


@pytest.fixture(scope="module")
def updates(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of one batch: two epochs of two minibatches of two micro-batches each."""
    folder: Path = tmp_path_factory.mktemp("cell")
    cell = cell_of(folder, **TASK)
    (folder / "cell.json").write_text(json.dumps(cell), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = str(taken.getsockname()[1])
        ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ours = {VARIABLE: in_force(patches_of(cell, watched=True)), CELL_VARIABLE: str(folder / "cell.json")}
        for name, value in (CPU_ENVIRONMENT | ranks | ours).items():
            patch.setenv(name, value)
        patch.syspath_prepend(STAND_IN)
        install()
        model().save_pretrained(folder / "model")
        return train(cell, folder / "model")


def train(cell: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    from openrlhf.models import Actor
    from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer
    from openrlhf.utils import get_strategy

    from adapters.openrlhf.records import RECORDS

    args = resolve(argv_of(flags_of(cell, Files(path, path / "prompts.jsonl", 2, PROMPT, path / "agent.py"))))
    args.local_rank = 0
    strategy = get_strategy(args)
    strategy.setup_distributed()
    actor = Actor(str(path), attn_implementation="eager", param_dtype="bf16", ds_config=strategy.get_ds_train_config())
    held = {"optim": "adam", "muon": {}, "adam": vars(args.actor.adam), "max_norm": args.actor.max_norm}
    schedule = {"lr_scheduler": "constant", "lr_warmup_ratio": 0.0, "scheduler_steps": 4}
    actor, optimizer, scheduler = strategy.prepare((actor, held | schedule))
    micro = args.train.micro_batch_size
    trainer = ActorPPOTrainer(strategy, actor, None, optimizer, scheduler, micro_train_batch_size=micro)
    old = logprobs(model())
    for sample in range(SAMPLES):
        trainer.replay_buffer.append(experience(sample, old))
    found: list[dict[str, Any]] = trainer.ppo_train(0.0)[f"{RECORDS}_0"]
    return found


def test_each_optimizer_step_is_a_record_with_the_versions_around_it(updates: list[dict[str, Any]]) -> None:
    versions = [(update["policy_version_before"], update["policy_version_after"]) for update in updates]
    assert versions == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert all(update["applied"] for update in updates)
    assert {update["weight_dtype"] for update in updates} == {"torch.float32"}
    assert {update["learning_rate"] for update in updates} == {0.0003}


def test_every_sample_is_trained_on_once_an_epoch(updates: list[dict[str, Any]]) -> None:
    everyone = sorted(f"s{sample}" for sample in range(SAMPLES))
    for epoch in (updates[:2], updates[2:]):
        assert sorted(row["sample_id"] for update in epoch for row in update["rows"]) == everyone
    for update in updates:
        assert [row["advantage"] for row in update["rows"]] == [
            advantage(int(row["sample_id"][1:])) for row in update["rows"]
        ]


def test_the_first_step_has_the_starting_weights_log_probs(updates: list[dict[str, Any]]) -> None:
    expected = logprobs(model())
    for row in updates[0]["rows"]:
        wanted = expected[int(row["sample_id"][1:])]
        assert torch.allclose(torch.tensor(row["trainer_logprobs"]), wanted, atol=1e-5)
        assert torch.allclose(torch.tensor(row["old_logprobs"]), wanted, atol=1e-5)


def test_the_loss_is_the_token_mean_over_the_minibatch(updates: list[dict[str, Any]]) -> None:
    rows = updates[0]["rows"]
    expected = -sum(row["advantage"] for row in rows) / len(rows)
    assert updates[0]["loss"] == pytest.approx(expected, abs=1e-5)
    assert updates[0]["grad_norm"] > 0
