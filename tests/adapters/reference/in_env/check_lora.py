"""Adapters: what is trained, what is published of it, and the reference beside it."""

import copy
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from safetensors.torch import save_file

from adapters.reference.facts import settings_in_force
from adapters.reference.lora import add_lora, lora_config, peft_name
from adapters.reference.settings import Lora
from adapters.reference.trainer import Trainer
from harness.probe.readback import model_facts, parameter_sha256
from tests.adapters.reference import cells
from tests.adapters.reference.in_env import tiny

VOCAB = 24
LORA = Lora(rank=4, alpha=8.0)
SETTINGS = replace(
    tiny.SETTINGS,
    lora=LORA,
    objective=replace(tiny.OBJECTIVE, kl_beta=0.1),
    optimizer=replace(tiny.OPTIMIZER, learning_rate=0.02),
)


def trained(steps: int = 2) -> tuple[Trainer, Any]:
    """A trainer after some steps, and the module that it started from."""
    module = tiny.model(VOCAB, tied=True, scale=0.1)
    start = copy.deepcopy(module)
    trainer = tiny.trainer(module, SETTINGS)
    for step in range(steps):
        minibatch = [tiny.sample(number, VOCAB, random.Random(7 * step + number)) for number in range(6)]
        tiny.score(trainer, minibatch)
        assert trainer.update(minibatch, "gen-0", step).applied
    return trainer, start


def logits(module: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = module.eval()(input_ids=torch.arange(VOCAB)[None], use_cache=False).logits
    return found


def test_adapters_alone_are_trained_and_hashed() -> None:
    trainer, start = trained()
    held = {name.replace(".base_layer", ""): tensor for name, tensor in trainer.model.named_parameters()}
    for name, parameter in start.named_parameters():
        assert not held[name].requires_grad
        assert torch.equal(parameter, held[name])
    adapters = dict(trainer.adapter_weights())
    facts = model_facts(trainer.model)
    assert facts["trainable"] == sum(tensor.numel() for tensor in adapters.values()) > 0
    assert facts["parameters"] == facts["trainable"] + sum(parameter.numel() for parameter in start.parameters())
    assert {name.split(".")[-3] for name in adapters} == {"lora_A", "lora_B"}
    assert trainer.digest() != trained(steps=1)[0].digest()
    assert trainer.digest() == trained()[0].digest()
    assert {name.removeprefix("parameter.") for name in trainer.full_state() if "parameter." in name} == set(adapters)


def test_without_adapters_the_digest_is_of_all_parameters() -> None:
    module = tiny.model(VOCAB)
    assert tiny.trainer(module).digest() == parameter_sha256(module)


def test_merged_weights_are_a_plain_modules_and_predict_as_the_adapted_one_does() -> None:
    trainer, start = trained()
    merged = dict(trainer.weights())
    assert merged.keys() == dict(start.named_parameters()).keys()
    before = logits(start)
    start.load_state_dict(merged | {"lm_head.weight": merged["model.embed_tokens.weight"]})
    assert torch.allclose(logits(start), logits(trainer.model), atol=1e-5)
    assert not torch.allclose(before, logits(trainer.model), atol=1e-2)


def test_adapter_tensors_make_a_replicas_module_the_trainers() -> None:
    trainer, start = trained()
    add_lora(start, LORA, SETTINGS.seed)
    held = dict(start.named_parameters())
    with torch.no_grad():
        for name, tensor in trainer.adapter_weights():
            held[name].copy_(tensor)
    assert torch.equal(logits(start), logits(trainer.model))


def test_peft_reads_them_by_its_own_names(tmp_path: Path) -> None:
    trainer, start = trained()
    save_file(
        {peft_name(name): tensor.contiguous() for name, tensor in trainer.adapter_weights()},
        tmp_path / "adapter_model.safetensors",
    )
    lora_config(LORA).save_pretrained(tmp_path)
    assert torch.equal(logits(PeftModel.from_pretrained(start, tmp_path)), logits(trainer.model))


def test_the_reference_is_the_module_without_adapters() -> None:
    trainer, start = trained()
    made = tiny.sample(0, VOCAB, random.Random(3))
    scores = trainer.score([made], "gen-0", 0)
    assert scores.old is None
    assert scores.reference is not None
    expected = tiny.full_forward(start, made.prompt.token_ids, made.completion.tokens)
    assert torch.allclose(torch.tensor(scores.reference[0]), expected, atol=1e-5)
    assert all(tensor.requires_grad for name, tensor in trainer.model.named_parameters() if "lora" in name)


def test_what_is_in_force_is_read_off_the_parts(tmp_path: Path) -> None:
    stale = replace(SETTINGS.staleness, correction="mask", level="sequence", cap=3.0)
    settings = replace(SETTINGS, staleness=stale, logprobs="engine")
    held = settings_in_force(settings, tiny.trainer(tiny.model(VOCAB), settings), cells.cell(tmp_path)["task"])
    assert (held["lora_rank"], held["lora_alpha"], held["lora_layers"]) == (4, 8.0, 14)
    assert (held["correction"], held["correction_level"], held["correction_cap"]) == ("mask", "sequence", 3.0)
    assert (held["logprobs"], held["trainer_ranks"]) == ("engine", 1)
