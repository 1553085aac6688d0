"""The pools of actors, without Ray: who is dead is said, whenever it is found out."""

from typing import Any, cast

from adapters.reference.cluster import Actor, ActorLost, Call, Cluster
from adapters.reference.remote import ActorPool
from harness.probe import Probe


class Dead:
    """A cluster whose actors of some names have died."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def result(self, call: Call) -> None:
        """No answer comes from the dead."""
        if call.actor.name in self.names:
            raise ActorLost(call.actor, "killed")


class Standing(Actor):
    """An actor that is called and never answers by itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name, None)

    def call(self, method: str, *arguments: Any) -> Call:
        """A call under way."""
        return Call(self, None)


class Heard:
    """A probe that keeps who was declared dead."""

    def __init__(self) -> None:
        self.dead: list[str] = []

    def process_died(self, process: str, why: str) -> None:
        """Keep the name."""
        self.dead.append(process)


def test_an_actor_that_is_found_dead_at_the_end_is_declared_so() -> None:
    heard = Heard()
    cluster = cast(Cluster, Dead("verifier-1"))
    pool = ActorPool(cluster, lambda number, life: Standing(f"verifier-{number}"), 3, cast(Probe, heard))
    pool.close()
    assert heard.dead == ["verifier-1"]
