"""verl's trainer worker that can keep weights aside, under watch: what the disaggregated modes train with."""

from typing import Any

from verl.experimental.separation.engine_workers import DetachActorWorker

from adapters.verl.worker import ProbedWorker


class ProbedDetachWorker(ProbedWorker, DetachActorWorker):
    """`DetachActorWorker`, and what `ProbedWorker` adds."""


def plain(actor_class: Any) -> Any:
    """The class that a Ray actor class was made from."""
    return actor_class.__ray_metadata__.modified_class
