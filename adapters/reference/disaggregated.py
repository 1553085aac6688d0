"""Builds the disaggregated layouts: rollout replicas, verifiers and trainer ranks as actors, this process conducts."""

from contextlib import ExitStack

from adapters.reference.actors import RolloutReplica, TrainerRank, VerifierActor
from adapters.reference.buffer import RolloutBuffer
from adapters.reference.cluster import Actor, Cluster
from adapters.reference.learner import Learner
from adapters.reference.loop import Parts
from adapters.reference.publisher import Publisher
from adapters.reference.remote import RemotePool, RemoteScorer, RemoteTrainer
from adapters.reference.run import Built
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.settings import Settings
from harness.probe import Probe
from harness.task.bundle import Bundle


def build_disaggregated(settings: Settings, probe: Probe, stack: ExitStack) -> Built:
    """The loop's parts, every actor up and warm."""
    bundle = Bundle.load(settings.bundle)
    prompts = [prompt.token_ids for prompt in bundle.prompts]
    scheduler = PromptScheduler(bundle.prompts, settings)
    cluster = Cluster(settings)
    stack.callback(cluster.close)
    replicas = _start(cluster, stack, RolloutReplica, "rollout", settings.pools.replicas, probe)
    verifiers = _start(cluster, stack, VerifierActor, "verifier", settings.pools.verifiers, probe)
    ranks = _start(cluster, stack, TrainerRank, "trainer", settings.pools.trainer_ranks, probe)
    trainer = RemoteTrainer(cluster, ranks, settings)
    pool = RemotePool(cluster, replicas)
    cluster.results([(actor, actor.call("ready")) for actor in (*replicas, *verifiers, *ranks)])
    buffer = RolloutBuffer(settings, bundle, probe)
    publisher = Publisher(trainer, pool, prompts, settings, probe)
    parts = Parts(
        scheduler=scheduler,
        collectors=pool,
        scorer=RemoteScorer(cluster, verifiers),
        buffer=buffer,
        learner=Learner(settings, trainer, buffer, publisher, probe),
        publisher=publisher,
    )
    return Built(parts, trainer, settings.engine, devices=len(replicas) + len(ranks))


def _start(cluster: Cluster, stack: ExitStack, kind: type, name: str, count: int, probe: Probe) -> list[Actor]:
    actors = [cluster.actor(kind, f"{name}-{number}", probe.cell, number) for number in range(count)]
    stack.callback(lambda: cluster.results([(actor, actor.call("close")) for actor in actors]))
    return actors
