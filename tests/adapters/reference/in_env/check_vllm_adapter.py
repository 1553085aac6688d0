"""Adapters in vLLM: each publication arrives, and a number that is used again is named."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm.lora.request import LoRARequest

from adapters.reference.engine_vllm import VllmEngine
from adapters.reference.publisher import TOLERANCE
from adapters.reference.settings import Lora
from harness.errors import SystemFailure
from tests.adapters.reference.in_env import laws, tiny
from tests.adapters.reference.in_env.replica import PROMPTS, Stand, stand


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("bundle")
    tiny.model(laws.VOCAB).save_pretrained(folder / "model")
    decoding = replace(tiny.DECODING, max_tokens=20, stop_at_eos=False)
    settings = replace(tiny.SETTINGS, bundle=folder, decoding=decoding, publication="adapter", lora=Lora(4, 8.0))
    engine = VllmEngine(settings, tiny.model(laws.VOCAB), 8, tiny.EOS)
    engine.generate(PROMPTS, 2, 4)
    yield engine, settings
    engine.close()


def train(made: Stand, seed: int) -> None:
    """Adapters far from those before."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for _, tensor in made.trainer.adapter_weights():
            tensor.normal_(std=0.2)
    made.trainer.version += 1


def test_it_serves_each_adapter_that_is_published(replica: Any, tmp_path: Path) -> None:
    engine, settings = replica
    with stand(tmp_path, [engine], settings, tiny.model(laws.VOCAB)) as made:
        for number in range(3):
            outcome = made.publisher.publish()
            assert outcome.gap is not None
            assert outcome.gap <= TOLERANCE
            laws.check_log_probs(made.ask(), PROMPTS, made.module, 1.0)
            train(made, number)
        assert {row["bytes"] for row in made.probe.rows} == {
            4 * sum(t.numel() for _, t in made.trainer.adapter_weights())
        }
    assert {row["kind"] for row in made.probe.rows} == {"adapter"}


def test_a_number_that_an_adapter_has_had_is_named(
    replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, settings = replica
    with stand(tmp_path, [engine], settings, tiny.model(laws.VOCAB)) as made:
        monkeypatch.setattr(engine._adapters, "named", lambda folder: LoRARequest("policy", 77, folder))
        assert made.publisher.publish().ok
        train(made, 5)
        with pytest.raises(SystemFailure, match="control log-probs differ"):
            made.publisher.publish()
