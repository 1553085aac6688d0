"""The fast engine: the laws of every engine, alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from adapters.reference.engine_vllm import HOOKS, VllmEngine
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer
from harness.probe import Probe
from harness.probe.hooks import verify_hooks
from tests.adapters.reference.in_env import laws, tiny

PROMPTS = [[3, 5, 7, 9, 11, 2, 4], [6, 8, 10, 4], list(range(2, 12)) * 7]
LONGEST = 70
SILENT = Probe({"directory": ".", "run_id": "check", "attempt": 0}, enabled=False)


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def parts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Any, Settings]]:
    """Engine, trained module, settings; vLLM takes half a minute to start, so one engine serves all checks."""
    folder: Path = tmp_path_factory.mktemp("bundle")
    module = tiny.model(laws.VOCAB, tied=request.param)
    module.save_pretrained(folder / "model")
    settings = replace(tiny.SETTINGS, bundle=folder, group_size=200, decoding=replace(tiny.DECODING, max_tokens=20))
    engine = VllmEngine(settings, module, LONGEST, tiny.EOS)
    engine.generate(PROMPTS, 4, 4)
    yield engine, module, settings
    engine.close()


def test_no_hook_has_drifted() -> None:
    assert verify_hooks(HOOKS) == []


@pytest.mark.parametrize("decoding", laws.DECODINGS, ids=str)
def test_it_samples_the_distribution_that_it_reports(
    parts: Any, decoding: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, module, settings = parts
    monkeypatch.setattr(engine, "_decoding", replace(settings.decoding, **decoding))
    torch.manual_seed(11)
    laws.check_sampling(engine, module, engine._decoding, rounds=2)


def test_its_log_probs_are_those_of_a_full_forward_pass_before_and_after_an_update(parts: Any) -> None:
    engine, module, settings = parts
    trainer = Trainer(module, settings, pad=0, probe=SILENT)
    for version in range(3):
        generation = engine.generate(PROMPTS, 4, 20)
        laws.check_log_probs(generation, PROMPTS, module, 1.0)
        laws.check_phases(generation)
        tiny.perturb(module)
        moved = engine.publish(trainer.weights(), version)
        assert moved == sum(parameter.numel() * 4 for parameter in module.parameters())


def test_whole_blocks_of_a_groups_prompt_are_computed_once(parts: Any) -> None:
    engine, module, settings = parts
    engine.publish(Trainer(module, settings, pad=0, probe=SILENT).weights(), 7)
    computed = sum(phase.input_tokens for phase in engine.generate(PROMPTS[2:], 4, 4).phases)
    assert computed == 70 + 3 * (70 - 64)


@pytest.mark.parametrize("stop", [True, False])
def test_completions_end_where_they_should(parts: Any, stop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _, settings = parts
    monkeypatch.setattr(engine, "_decoding", replace(settings.decoding, temperature=2.0, stop_at_eos=stop))
    generation = engine.generate([[3, 2, 4]] * 4, 40, 6)
    laws.check_ends(generation, stop)
    assert {c.stop_source for group in generation.groups for c in group} == {"reported"}


def test_equal_seeds_give_equal_completions(parts: Any) -> None:
    engine, _, _ = parts
    drawn = []
    for _ in range(3):
        torch.manual_seed(4)
        drawn.append([c.tokens for group in engine.generate(PROMPTS, 4, 6).groups for c in group])
    assert drawn[1] == drawn[2] == drawn[0]
