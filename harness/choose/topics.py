"""What a team may require, in the order of step 12.5.4: topics, each with a closed vocabulary, over the map's axes."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.contract.axes import AXES

LAG = "allowed_lag"
ASYNCHRONOUS = ("one_step_off", "asynchronous", "fully_asynchronous")
"""Values of the axis synchrony under which generation and training may go on beside each other."""


@dataclass(frozen=True)
class Word:
    """A word of a topic: the values of its axis of which any one meets it, and what it means."""

    values: tuple[str, ...]
    means: str


@dataclass(frozen=True)
class Topic:
    """One thing that a team may have a requirement on.

    Attributes:
        axis: of the framework map (`harness.contract.axes`), by which it is answered.
        words: its vocabulary; empty for `allowed_lag`, which is a number.
    """

    title: str
    asks: str
    axis: str
    words: Mapping[str, Word]


def _topic(title: str, asks: str, axis: str, own: Mapping[str, Word] | None = None, prefix: str = "") -> Topic:
    """The words of an axis, without their common prefix, after the topic's own, which stand in the place of theirs."""
    words = dict(own or {})
    renamed = {word.values for word in words.values()}
    for value, means in AXES[axis].values.items():
        if (value,) not in renamed:
            words.setdefault(value.removeprefix(prefix), Word((value,), means))
    return Topic(title, asks, axis, words)


TOPICS: dict[str, Topic] = {
    "nodes": _topic(
        "nodes",
        "must a run span machines?",
        "nodes",
        {"one": Word(("one_node",), "a run fits one machine"), "many": Word(("many_nodes",), "a run spans machines")},
    ),
    "weights": _topic("trained weights", "full fine-tuning or LoRA?", "adapters_lora"),
    "turns": _topic("turns", "one-shot or multi-turn rollouts?", "multi_turn"),
    "placement": _topic("placement", "do generation and training share devices?", "placement"),
    "synchrony": _topic(
        "synchrony",
        "who waits for whom?",
        "synchrony",
        {
            "asynchronous": Word(ASYNCHRONOUS, "generation goes on beside training, in any of the three ways"),
            "asynchronous_batches": Word(("asynchronous",), AXES["synchrony"].values["asynchronous"]),
        },
    ),
    LAG: Topic(
        "allowed lag",
        "how many optimizer updates may lie between the version that sampled and the one that is trained? A number",
        "lag_bound",
        {},
    ),
    "queue": _topic("queue policy", "what stands between generation and training?", "queue"),
    "training_backend": _topic(
        "training backend",
        "FSDP, Megatron, DeepSpeed?",
        "training_backend",
        {"fsdp": Word(("fsdp", "fsdp2"), "PyTorch FSDP, the first or the second")},
    ),
    "rollout_engine": _topic("rollout engine", "vLLM, SGLang?", "rollout_engine"),
    "recovery": _topic("recovery", "what must survive a crash, and who mends it?", "recovery", prefix="keeps_"),
    "telemetry": _topic("telemetry", "where must it write, and of what?", "telemetry"),
    "abstraction": _topic("level of abstraction", "at which level can the team debug it?", "abstraction"),
}
