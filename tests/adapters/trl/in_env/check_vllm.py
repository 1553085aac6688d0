"""The paths through vLLM as far as a machine without a GPU carries them: TRL's own arguments, its own control flow with
a stand-in for the engine, and the command of its server."""

import copy
import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from trl import GRPOConfig

from adapters.trl import run as run_module
from adapters.trl.gpu.server import server_command
from adapters.trl.settings import SERVER_PORT, grpo_arguments
from tests.adapters.trl.cells import cell_of
from tests.adapters.trl.in_env.runs import run

VLLM = {"engine": "vllm"}


class StandIn:
    """What TRL asks of `VLLMGeneration`: its own copy of the weights, `sync_weights`, `generate`, and in sleep mode an
    `llm` that wakes and sleeps."""

    def __init__(self, model: Any, accelerator: Any, processing_class: Any, **settings: Any) -> None:
        self.mode, self.enable_sleep_mode = settings["mode"], settings["enable_sleep_mode"]
        self._source, self._tokenizer, self._settings = model, processing_class, settings
        self._engine = copy.deepcopy(model)
        self.llm = SimpleNamespace(wake_up=lambda tags: None, sleep=lambda level: None)

    def sync_weights(self) -> None:
        if self.enable_sleep_mode:
            self.llm.wake_up(tags=["weights"])
        self._engine.load_state_dict(self._source.state_dict())

    def generate(self, prompts: Any, images: Any, num_generations: int, profiler: Any = None) -> Any:
        if self.enable_sleep_mode:
            self.llm.wake_up(tags=["kv_cache"])
        ids, logprobs = [], []
        for prompt in prompts:
            tokens, said = self._sample(list(prompt))
            ids.append(tokens)
            logprobs.append([[value] for value in said])
        if self.enable_sleep_mode:
            self.llm.sleep(level=2)
        return prompts, ids, logprobs, None

    @torch.no_grad()
    def _sample(self, prompt: list[int]) -> tuple[list[int], list[float]]:
        tokens: list[int] = []
        said: list[float] = []
        while len(tokens) < self._settings["max_completion_length"] and 1 not in tokens:
            scores = self._engine(torch.tensor([prompt + tokens])).logits[0, -1].log_softmax(-1)
            tokens.append(int(torch.multinomial(scores.exp(), 1)))
            said.append(float(scores[tokens[-1]]))
        return tokens, said


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trl.trainer.grpo_trainer.VLLMGeneration", StandIn)


@pytest.mark.parametrize("sleep", [False, True])
def test_the_stages_and_records_of_vllm(sleep: bool, tmp_path: Path, bundle: Path) -> None:
    done = run(tmp_path / "cell", bundle, options=VLLM | {"sleep_mode": sleep})
    stages = {row["stage"] for row in done.rows("spans")}
    assert {"generate", "weight_sync", "logprob_recompute"} <= stages
    assert not stages & {"prefill", "decode"}
    assert {"prefill", "decode"} <= done.ledger.manifest["absent_stages"].keys()
    publications = done.rows("publications")
    assert [(row["published_version"], row["policy_version"]) for row in publications] == [(0, 0), (1, 1), (2, 2)]
    assert {row["kind"] for row in publications} == {"full"}
    assert all(row["bytes"] == done.ledger.manifest["model"]["bytes"] for row in publications)
    assert sum(row["output_tokens"] for row in done.spans("generate")) == sum(
        len(row["response_tokens"]) for row in done.rows("rollouts")
    )


def test_its_log_probs_are_the_engines_and_the_old_ones_are_recomputed(tmp_path: Path, bundle: Path) -> None:
    done = run(tmp_path / "cell", bundle, options=VLLM)
    rollouts = {row["sample_id"]: row for row in done.rows("rollouts")}
    for row in done.rows("trained"):
        engine = rollouts[row["sample_id"]]["behavior_logprobs"]
        assert np.allclose(row["old_logprobs"], engine, atol=1e-4)
        assert np.allclose(row["trainer_logprobs"], engine, atol=1e-4)
    assert {row["behavior_logprob_kind"] for row in rollouts.values()} == {"sampled_distribution"}


def test_a_served_version_is_published_before_it_generates(tmp_path: Path, bundle: Path) -> None:
    done = run(tmp_path / "cell", bundle, options=VLLM | {"sleep_mode": True})
    ends = {row["policy_version"]: row["t_end"] for row in done.rows("publications")}
    assert all(ends[row["policy_version"]] <= row["t_generate_start"] for row in done.rows("rollouts"))


@pytest.mark.parametrize(
    ("layout", "profile", "options"),
    [
        ("colocated_sync", "one_gpu", VLLM),
        ("colocated_sync", "one_gpu", VLLM | {"sleep_mode": True}),
        ("disaggregated_sync", "multi_gpu", {}),
    ],
)
@pytest.mark.parametrize("track", ["free", "fixed_length"])
def test_trl_takes_the_arguments(layout: str, profile: str, options: Any, track: str, tmp_path: Path) -> None:
    cell = cell_of(tmp_path, layout=layout, profile=profile, options=options, track=track)
    arguments = grpo_arguments(cell)
    fields = {field.name for field in dataclasses.fields(GRPOConfig)}
    assert set(arguments) <= fields
    config = GRPOConfig(**arguments | {"use_cpu": True})
    assert config.use_vllm
    assert config.vllm_mode == ("server" if layout == "disaggregated_sync" else "colocate")
    assert config.vllm_enable_sleep_mode == bool(options.get("sleep_mode"))
    assert (config.generation_kwargs is None) == (track == "free")


def test_the_server_is_what_trl_wants_it_to_be() -> None:
    command = server_command("/models/m", {"gpu_memory_utilization": 0.5})
    assert command[command.index("--port") + 1] == str(SERVER_PORT)
    assert command[command.index("--logprobs-mode") + 1] == "processed_logprobs"
    assert "--weight-transfer-config" in command
    assert run_module.TRAINER_MODELS == ["temperature"]
