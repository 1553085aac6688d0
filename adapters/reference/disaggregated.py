"""Builds the disaggregated layouts: rollout replicas, verifiers and trainer ranks as actors, this process conducts."""

from contextlib import ExitStack

from adapters.reference.actors import RolloutReplica, TrainerRank, VerifierActor, process_of
from adapters.reference.buffer import RolloutBuffer
from adapters.reference.cluster import Actor, Cluster
from adapters.reference.keeper import Keeper, Kept
from adapters.reference.learner import Learner
from adapters.reference.loop import Loop, Parts
from adapters.reference.publisher import Publisher
from adapters.reference.pump import Pump
from adapters.reference.remote import ActorPool, RemotePool, RemoteScorer, RemoteTrainer, Starter
from adapters.reference.run import Built, Runnable
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.settings import Settings
from harness.probe import Probe
from harness.task.bundle import Bundle

REPLICA_CALLS = 2
"""Calls that a replica runs at once: it takes the next weights in while it answers with the present ones."""


def build_disaggregated(settings: Settings, probe: Probe, stack: ExitStack) -> Built:
    """The loop's parts, every actor up and warm."""
    bundle = Bundle.load(settings.bundle)
    prompts = [prompt.token_ids for prompt in bundle.prompts]
    scheduler = PromptScheduler(bundle.prompts, settings)
    cluster = Cluster(settings)
    stack.callback(cluster.close)
    asked = settings.pools
    pools = [
        ActorPool(cluster, _starter(cluster, RolloutReplica, "rollout", probe, REPLICA_CALLS), asked.replicas, probe),
        ActorPool(cluster, _starter(cluster, VerifierActor, "verifier", probe, 1), asked.verifiers, probe),
        ActorPool(cluster, _starter(cluster, TrainerRank, "trainer", probe, 1), asked.trainer_ranks, probe),
    ]
    for pool in pools:
        stack.callback(pool.close)
    for pool in pools:
        pool.ready()
    replicas, verifiers, ranks = pools
    collectors, trainer = RemotePool(replicas, probe), RemoteTrainer(ranks, settings)
    buffer = RolloutBuffer(settings, bundle, probe)
    publisher = Publisher(trainer, collectors, prompts, settings, probe)
    learner = Learner(settings, trainer, buffer, publisher, probe)
    keeper = Keeper(settings, bundle, Kept(learner, scheduler, publisher, trainer), probe)
    stack.callback(keeper.close)
    parts = Parts(
        scheduler=scheduler,
        collectors=collectors,
        scorer=RemoteScorer(verifiers),
        buffer=buffer,
        learner=learner,
        publisher=publisher,
        keeper=keeper,
    )
    if settings.layout == "disaggregated_async":
        learner_probe = Probe(probe.cell, "learner", enabled=probe.enabled)
        stack.callback(learner_probe.close)
        loop: Runnable = Pump(settings, parts, collectors, cluster, probe, learner_probe)
    else:
        loop = Loop(settings, parts, probe)
    return Built(parts, loop, trainer, settings.engine, devices=asked.replicas + asked.trainer_ranks)


def _starter(cluster: Cluster, kind: type, name: str, probe: Probe, concurrency: int) -> Starter:
    def start(number: int, life: int) -> Actor:
        return cluster.actor(kind, process_of(name, number, life), probe.cell, number, life, concurrency=concurrency)

    return start
