"""The installed OpenRLHF and vLLM have every place that the adapter holds on to, and Ray's actors what we put there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adapters.openrlhf.hooks import hook_drift

WATCHED = ("init_checkpoint_states", "train_step", "ppo_train", "save_logs_and_checkpoints")


def layers(function: Any) -> Iterator[Any]:
    """A function and what it wraps; Ray wraps every method of an actor too."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def test_nothing_has_drifted() -> None:
    assert hook_drift() == []


def test_the_controllers_actors_call_through_ours() -> None:
    hook_drift()
    from openrlhf.trainer.ppo_trainer import PPOTrainer
    from openrlhf.trainer.ppo_trainer_async import TrainingActor

    for actor in (PPOTrainer, TrainingActor):
        kind = actor.__ray_metadata__.modified_class
        for name in WATCHED:
            files = [Path(layer.__code__.co_filename).name for layer in layers(getattr(kind, name))]
            assert "wrap.py" in files, f"{kind.__name__}.{name}: {files}"
