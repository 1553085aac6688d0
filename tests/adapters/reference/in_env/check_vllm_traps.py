"""vLLM as a replica: publications arrive, and each trap of its CPU build is named when its cure is taken away."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm import LLM

from adapters.reference.engine_vllm import VllmEngine
from adapters.reference.publisher import TOLERANCE
from harness.errors import SystemFailure
from tests.adapters.reference.in_env import laws, tiny
from tests.adapters.reference.in_env.replica import PROMPTS, Stand, stand

LONG = list(range(2, 12)) * 7
DIFFER = "control log-probs differ"


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def replica(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An engine, its settings and the module it was started from; vLLM takes half a minute to start."""
    folder: Path = tmp_path_factory.mktemp("bundle")
    module = tiny.model(laws.VOCAB, tied=request.param)
    module.save_pretrained(folder / "model")
    settings = replace(tiny.SETTINGS, bundle=folder, decoding=replace(tiny.DECODING, max_tokens=20, stop_at_eos=False))
    engine = VllmEngine(settings, module, len(LONG), tiny.EOS)
    engine.generate([*PROMPTS, LONG], 2, 4)
    yield engine, settings, module
    engine.close()


def standing(replica: Any, folder: Path) -> AbstractContextManager[Stand]:
    """A trainer whose weights are far from those that the engine has, and the engine as its replica."""
    engine, settings, module = replica
    other = tiny.model(laws.VOCAB, seed=9, tied=module.config.tie_word_embeddings)
    return stand(folder, [engine], settings, other)


def published(made: Stand) -> None:
    assert made.publisher.publish().ok


def test_a_bare_load_of_the_weights_whose_error_is_lost(
    replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = replica[0]

    def half(tensors: Any) -> None:
        with pytest.raises((AssertionError, AttributeError)):
            engine._module.load_weights(iter(tensors))

    with standing(replica, tmp_path) as made:
        monkeypatch.setattr(engine, "_reload", half)
        with pytest.raises(SystemFailure, match=DIFFER):
            made.publisher.publish()
        new = made.module.get_input_embeddings().weight
        assert torch.equal(engine._module.model.embed_tokens.weight[: len(new)], new), "nothing was applied at all"


def test_it_serves_what_the_trainer_holds(replica: Any, tmp_path: Path) -> None:
    with standing(replica, tmp_path) as made:
        for _ in range(3):
            outcome = made.publisher.publish()
            assert outcome.gap is not None
            assert outcome.gap <= TOLERANCE
            laws.check_log_probs(made.ask(), PROMPTS, made.module, 1.0)
            made.train()


def test_weights_that_did_not_arrive(replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with standing(replica, tmp_path) as made:
        monkeypatch.setattr(replica[0], "publish", lambda weights, version: 0)
        with pytest.raises(SystemFailure, match=DIFFER):
            made.publisher.publish()


def test_a_bare_load_of_the_weights(replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replica[0]
    with standing(replica, tmp_path) as made:
        monkeypatch.setattr(engine, "_reload", lambda tensors: engine._module.load_weights(iter(tensors)))
        with pytest.raises(SystemFailure, match="replicas may serve different ones"):
            made.publisher.publish()


def test_an_output_layer_that_stayed_packed(replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _, module = replica
    if not module.config.tie_word_embeddings:
        pytest.skip("an untied output layer is packed anew by the reload itself")
    with standing(replica, tmp_path) as made:
        published(made)
        made.train(by=0.3)
        monkeypatch.setattr(engine, "_repacks", False)
        with pytest.raises(SystemFailure, match=DIFFER):
            made.publisher.publish()
        said = engine._llm.collective_rpc("compute_weight_checksums")
        monkeypatch.undo()
        published(made)
        assert engine._llm.collective_rpc("compute_weight_checksums") == said, "its checksums were of some use"


def test_a_prefix_cache_that_says_it_was_not_reset(
    replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with standing(replica, tmp_path) as made:
        monkeypatch.setattr(LLM, "reset_prefix_cache", lambda self, reset_running_requests: False)
        with pytest.raises(SystemFailure, match="prefix cache"):
            made.publisher.publish()


def test_keys_and_values_of_old_weights(replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with standing(replica, tmp_path) as made:
        made.publisher._control = [LONG]
        published(made)
        made.train(by=0.3)
        monkeypatch.setattr(LLM, "reset_prefix_cache", lambda self, reset_running_requests: True)
        with pytest.raises(SystemFailure, match=DIFFER):
            made.publisher.publish()


class Swapping:
    """Publishes once, after so many forward passes of a request in flight."""

    def __init__(self, made: Stand, after: int) -> None:
        self._made, self._left = made, after

    def __call__(self) -> bool:
        self._left -= 1
        if self._left:
            return False
        engine = self._made.pool.workers[0].engine
        engine.publish(self._made.trainer.weights(), self._made.trainer.version)
        return True


def generated_across_a_swap(made: Stand, engine: Any, spoil: Callable[[], None]) -> tuple[Any, Any, Any]:
    """A generation through which the weights changed, and the modules before and after."""
    published(made)
    spoil()
    before = tiny.model(laws.VOCAB, tied=made.module.config.tie_word_embeddings)
    before.load_state_dict(made.module.state_dict())
    made.train(by=0.3)
    return engine.generate([*PROMPTS, LONG], 3, 20, Swapping(made, after=7)), before, made.module


def span_gaps(generation: Any, before: Any, after: Any) -> tuple[float, float]:
    """The largest gaps of the tokens sampled before the swap and after it, each against its own version's module."""
    gaps: dict[int, list[float]] = {0: [0.0], 1: [0.0]}
    for prompt, group in zip([*PROMPTS, LONG], generation.groups, strict=True):
        for completion in group:
            assert completion.versions == [0] * 7 + [1] * 13
            for version, module in ((0, before), (1, after)):
                expected = tiny.full_forward(module, prompt, completion.tokens).tolist()
                rows = zip(completion.versions, completion.logprobs, expected, strict=True)
                gaps[version] += [abs(said - real) for own, said, real in rows if own == version]
    return max(gaps[0]), max(gaps[1])


def test_each_token_says_its_version_where_weights_change_under_a_request(
    replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = replica[0]
    with standing(replica, tmp_path) as made:
        monkeypatch.setattr(engine, "_under_requests", True)
        generation, before, after = generated_across_a_swap(made, engine, lambda: None)
    assert max(span_gaps(generation, before, after)) <= TOLERANCE
    assert sum(phase.output_tokens for phase in generation.phases) == 9 * 20
    # Everything in flight was computed again: prompts, and seven tokens of each completion.
    lengths = [len(prompt) for prompt in (*PROMPTS, LONG)]
    again = generation.phases[2]
    assert again.stage == "prefill"
    assert again.input_tokens <= sum(3 * (length + 7) for length in lengths)


def test_requests_in_flight_that_keep_what_old_weights_computed(
    replica: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = replica[0]
    with standing(replica, tmp_path) as made:
        spoiled = partial(monkeypatch.setattr, LLM, "reset_prefix_cache", lambda self, reset_running_requests: True)
        generation, before, after = generated_across_a_swap(made, engine, spoiled)
        old, new = span_gaps(generation, before, after)
        assert old <= TOLERANCE < new
        monkeypatch.undo()
        engine._llm.reset_prefix_cache()


def test_no_change_reaches_a_request_where_versions_are_one(replica: Any, tmp_path: Path) -> None:
    engine = replica[0]
    with standing(replica, tmp_path) as made:
        published(made)
        with pytest.raises(SystemFailure, match="prefix cache"):
            engine.generate(PROMPTS, 2, 20, Swapping(made, after=3))
        while engine._engine.has_unfinished_requests():
            engine._engine.step()
        engine._watch.forget()
