"""What holds on to verl's asynchronous modes, against verl's own classes: no Ray, no run."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from adapters.verl.asynchronous.controller import of_older_trainer
from adapters.verl.asynchronous.pace import MODES
from adapters.verl.asynchronous.programs import composed, task_runner
from adapters.verl.asynchronous.segments import collecting, witnessed
from adapters.verl.asynchronous.stamps import token_stamps
from adapters.verl.cpu.copies import copying
from adapters.verl.cpu.pauses import pausing
from adapters.verl.cpu.transport import SharedFile, Torn
from adapters.verl.settings import overrides, words
from tests.adapters.verl.asynchronous.test_pace import LAYOUT_OF
from tests.adapters.verl.cells import cpu_cell

MODE_NAMES = [mode for modes in MODES.values() for mode in modes]


@pytest.mark.parametrize("mode", MODE_NAMES)
def test_verl_takes_the_settings_of_every_mode(mode: str) -> None:
    cell = cpu_cell(options={"mode": mode}) | {"layout": {"name": LAYOUT_OF[mode], "lag_bound": 2, "placement": ""}}
    config = composed(mode, words(overrides(cell)))
    assert config.actor_rollout_ref.rollout.n == cell["task"]["group_size"]
    assert config.actor_rollout_ref.hybrid_engine == (mode in ("sync", "colocate_async"))
    assert task_runner(mode) is not None


class Server:
    """Stands for a rollout server: gives its answers one after another."""

    def __init__(self, answers: list[TokenOutput]) -> None:
        self.answers, self.asked = answers, []
        self.generate = self

    async def remote(self, **asked: Any) -> TokenOutput:
        self.asked.append(asked)
        return self.answers.pop(0)


def client_of(kind: type, server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def acquire(*_: Any, **__: Any) -> tuple[str, Server]:
        return "server", server

    monkeypatch.setattr(kind, "_acquire_server", acquire)
    monkeypatch.setattr(LLMServerClient, "_release_server", lambda *_, **__: None)
    rollout = {"name": "vllm", "response_length": 8, "full_determinism": False}
    return kind(OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}}), None)


def answer(tokens: list[int], stamp: int, reason: str) -> TokenOutput:
    fields = {"global_steps": stamp}
    return TokenOutput(token_ids=tokens, log_probs=[-0.5] * len(tokens), stop_reason=reason, extra_fields=fields)


def test_each_answer_of_an_interrupted_completion_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server([answer([1, 2], 4, "aborted"), answer([3], 5, "completed")])
    client = witnessed(client_of(FullyAsyncLLMServerClient, server, monkeypatch))

    async def ask() -> tuple[TokenOutput, list[Any]]:
        with collecting() as segments:
            return await client.generate("r", prompt_ids=[9], sampling_params={}), segments

    output, segments = asyncio.run(ask())
    assert output.token_ids == [1, 2, 3]
    assert token_stamps(segments, 3) == [4, 4, 5]
    assert [asked["prompt_ids"] for asked in server.asked] == [[9], [9, 1, 2]]


def test_verls_plain_client_is_witnessed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    client = witnessed(client_of(LLMServerClient, Server([answer([1], 0, "completed")]), monkeypatch))

    async def ask() -> list[Any]:
        with collecting() as segments:
            await client.generate("r", prompt_ids=[9], sampling_params={})
            return segments

    assert [segment["stamp"] for segment in asyncio.run(ask())] == [0]


def engines(folder: Path) -> tuple[SharedFile, SharedFile]:
    """A sender and a receiver of one publication."""
    sender, receiver = SharedFile(str(folder), bucket_size=1, is_master=True), SharedFile(str(folder))
    for engine, told in zip((sender, receiver), SharedFile.build_topology(1, 1, []), strict=True):
        engine.init_process_group(**{name: values[0] for name, values in told.items()})
    return sender, receiver


async def received(engine: SharedFile) -> list[tuple[str, torch.Tensor]]:
    return [pair async for pair in engine.receive_weights()]


def test_weights_arrive_as_they_were_sent(tmp_path: Path) -> None:
    sender, receiver = engines(tmp_path)
    tied = torch.randn(6, 4)
    sent = [("embed", tied), ("head", tied), ("half", torch.randn(3).bfloat16()), ("turned", torch.randn(2, 3).t())]
    said = asyncio.run(sender.send_weights(iter(sent)))
    came = asyncio.run(received(receiver))
    assert [name for name, _ in came] == [name for name, _ in sent]
    assert all(torch.equal(found, given) for (_, found), (_, given) in zip(came, sent, strict=True))
    assert said["rlaxes/bytes"] == 2 * 6 * 4 * 4 + 3 * 2 + 6 * 4
    sender.finalize()
    assert not list(tmp_path.iterdir())


def test_weights_that_changed_on_the_way_are_refused(tmp_path: Path) -> None:
    sender, receiver = engines(tmp_path)
    asyncio.run(sender.send_weights(iter([("w", torch.zeros(64))])))
    file = next(tmp_path.glob("*.safetensors"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(Torn, match="not those that were sent"):
        asyncio.run(received(receiver))


def test_what_is_kept_aside_does_not_follow_the_weights() -> None:
    weight = torch.zeros(2)
    kept, _ = copying(lambda model: ({"w": (model.detach().cpu(), None)}, None))(weight)
    weight += 1
    assert kept["w"][0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"wait_for_inflight_requests": False, "clear_cache": True}, {"mode": "abort", "clear_cache": True}),
        ({"wait_for_inflight_requests": True}, {"mode": "wait"}),
        ({"mode": "keep"}, {"mode": "keep"}),
    ],
)
def test_vllm_is_told_to_pause_in_its_own_words(asked: dict[str, Any], told: dict[str, Any]) -> None:
    heard: list[dict[str, Any]] = []

    async def pause(_: Any, **named: Any) -> None:
        heard.append(named)

    asyncio.run(pausing(pause)(None, **asked))
    assert heard == [told]


def test_rows_of_the_older_trainers_lose_their_padding() -> None:
    own = [
        {"stamps": [0], "row": {"extra_info": {"prompt_id": f"p{at}"}, "rlaxes_round": 0, "session_id": at}}
        for at in (0, 1)
    ]
    tensors = {
        "prompts": torch.tensor([[0, 5, 6], [7, 8, 9]]),
        "responses": torch.tensor([[1, 2, 0], [3, 0, 0]]),
        "response_mask": torch.tensor([[1, 1, 0], [1, 0, 0]]),
        "attention_mask": torch.tensor([[0, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0]]),
        "rollout_log_probs": torch.tensor([[-1.0, -2.0, 0.0], [-3.0, 0.0, 0.0]]),
    }
    others = {"rlaxes": np.array(own, dtype=object), "score": np.array([1.0, 0.0])}
    batch = DataProto.from_dict(tensors=tensors, non_tensors=others, meta_info={"reward_extra_keys": ["score"]})
    columns = of_older_trainer(batch)
    assert columns["prompts"] == [[5, 6], [7, 8, 9]]
    assert columns["responses"] == [[1, 2], [3]]
    assert columns["rollout_log_probs"] == [[-1.0, -2.0], [-3.0]]
    assert "advantages" not in columns
    assert columns["session_id"] == [0, 1]
    assert columns["extra_fields"][0]["reward_extra_info"] == {"score": 1.0}
