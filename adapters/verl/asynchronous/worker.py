"""verl's trainer worker that can keep weights aside, under watch: what the disaggregated modes train with."""

from verl.experimental.separation.engine_workers import DetachActorWorker

from adapters.verl.worker import ProbedWorker


class ProbedDetachWorker(ProbedWorker, DetachActorWorker):
    """`DetachActorWorker`, and what `ProbedWorker` adds."""
