"""`rlaxes plan memory`: will it fit?"""

from pathlib import Path
from typing import Any

import yaml

import conf
from harness.commands.plan_words import Answer, ask, read_words, size
from harness.errors import UserError
from harness.simulate.reading import nearest
from harness.theory.architecture import Architecture
from harness.theory.budget import Ask, Line, lines_of, pools, total
from harness.theory.hf_config import architecture_of, read_config
from harness.theory.memory import PROFILES, read_profiles

CONF = Path(conf.__path__[0])
DEFAULTS: dict[str, Any] = {
    "ranks": 1,
    "tensor_parallel": 1,
    "lora_rank": 0,
    "sequences": 64,
    "tokens": 4096,
    "kv_bytes": 2,
    "engine_bytes": 2,
    "compute_bytes": 2,
    "micro_sequences": 1,
    "micro_tokens": 4096,
    "recompute": "none",
    "sleep": "kv",
    "offload": "nothing",
    "card": None,
    "utilisation": 0.9,
}
OWN = {"smollm2": "smollm2-135m"}
"""Models of `conf/model` and the config that is shipped of each; `tiny` is made from its settings."""
TINY_VOCABULARY = 102


def plan_memory(given: list[str]) -> Answer:
    """The budget that the words ask for.

    Raises:
        UserError: names the setting, or the field of the config, that is wrong.
    """
    found = read_words(given, ["model", "layout", "profile", "profiles", *DEFAULTS])
    if "model" not in found:
        raise UserError("which model? Give model=FOLDER, model=config.json, model=tiny, or a name such as llama-3-8b")
    shape = shape_of(str(found.pop("model")))
    layout = str(found.pop("layout", "colocated_sync"))
    name = str(found.pop("profile", "adamw_bf16_master"))
    profiles = PROFILES | (read_profiles(Path(str(found.pop("profiles")))) if "profiles" in found else {})
    if name not in profiles:
        raise UserError(f"profile={name}: no such profile{nearest(name, list(profiles))}")
    asked = ask(Ask, found, DEFAULTS)
    return answer_of(shape, layout, name, lines_of(shape, profiles[name], asked), asked)


def answer_of(shape: Architecture, layout: str, profile: str, lines: dict[str, Line], asked: Ask) -> Answer:
    """Every component, and the sum of each phase or pool.

    Raises:
        UserError: there is no such layout.
    """
    answer = Answer(more={"model_type": shape.model_type, "layout": layout, "profile": profile})
    answer.add("parameters", shape.parameters, f"{shape.parameters:,}", "exact")
    if shape.active != shape.parameters:
        answer.add("active_parameters", shape.active, f"{shape.active:,}", "that a token meets")
    if asked.lora_rank:
        adapter = shape.adapter(asked.lora_rank)
        answer.add("adapter_parameters", adapter, f"{adapter:,}", "r (in + out) of every matrix")
    state = (lines["trainer_weights"].bytes + lines["trainer_state"].bytes) * asked.ranks
    answer.add("state_bytes", state, size(state), f"B_state, {profile}")
    answer.add("state_bytes_per_rank", state / asked.ranks, size(state / asked.ranks), "~ B_state / D")
    one = shape.cached(1) * asked.kv_bytes
    answer.add("kv_bytes_per_token", one, f"{one:,.0f} bytes", "of all layers, while no window is full")
    payload = asked.sequences * shape.cached(asked.tokens) * asked.kv_bytes
    told = f"{asked.sequences} x {asked.tokens} tokens"
    answer.add("kv_bytes", payload, f"{size(payload)} = {payload:,.0f} bytes", told)
    for line in lines.values():
        answer.add(line.name, line.bytes, size(line.bytes), f"{line.grade}: {line.formula}")
    _phases(answer, layout, lines, asked)
    return answer


def _phases(answer: Answer, layout: str, lines: dict[str, Line], asked: Ask) -> None:
    phases = pools(asked, colocated=_placement(layout) == "colocated")
    sums = {phase: total(lines, names) for phase, names in phases.items()}
    for phase, names in phases.items():
        answer.add(f"B({phase})", sums[phase], size(sums[phase]), " + ".join(names))
    peak = max(sums, key=lambda phase: sums[phase])
    answer.add("B_peak", sums[peak], size(sums[peak]), f"max B(t), in {peak}")
    answer.more["timeline"] = {phase: {n: lines[n].bytes for n in names} for phase, names in phases.items()}
    answer.more["peak_phase"] = peak
    answer.warnings.append("no allocator's rest, no collectives' buffers and no graphs are in it: a lower bound")
    if asked.card is not None:
        room = asked.card * asked.utilisation
        answer.add("room", room, size(room), f"{asked.utilisation:g} of the card")
        if sums[peak] > room:
            short = size(sums[peak] - room)
            answer.warnings.insert(0, f"it does not fit: {peak} needs {size(sums[peak])}, {short} more than there are")


def _placement(layout: str) -> str:
    path = CONF / "layout" / f"{layout}.yaml"
    if not path.exists():
        known = sorted(file.stem for file in path.parent.glob("*.yaml"))
        raise UserError(f"layout={layout}: no such layout{nearest(layout, known)}")
    return str(yaml.safe_load(path.read_text(encoding="utf-8"))["placement"])


def shape_of(model: str) -> Architecture:
    """The architecture of a model by name, or from a folder or file.

    Raises:
        UserError: there is none, or it is not known.
    """
    if model == "tiny":
        settings = yaml.safe_load((CONF / "model" / "tiny.yaml").read_text(encoding="utf-8"))
        return architecture_of(tiny_config(settings["layers"], settings["hidden"]))
    return read_config(OWN.get(model, model))


def tiny_config(layers: int, hidden: int) -> dict[str, Any]:
    """Of the model `tiny`, as `harness.task.makers.tiny` builds it."""
    heads = hidden // 64
    return {
        "model_type": "qwen2",
        "vocab_size": TINY_VOCABULARY,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 2),
        "tie_word_embeddings": False,
    }
