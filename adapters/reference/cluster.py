"""The processes of a disaggregated cell: Ray actors, on this machine with nothing to start by hand, or on a cluster."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.reference.settings import Settings
from harness.errors import SystemFailure
from harness.probe.scratch import scratch_folder

OBJECT_STORE_BYTES = 128 << 20


class Actor:
    """A handle to one actor; its calls return at once."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name, self.handle = name, handle

    def call(self, method: str, *arguments: Any) -> "Call":
        """Start a call."""
        return Call(self, getattr(self.handle, method).remote(*arguments))


class ActorLost(SystemFailure):
    """The process of `actor` died."""

    def __init__(self, actor: Actor, why: str) -> None:
        super().__init__(f"{actor.name} died: {why}")
        self.actor = actor


@dataclass(frozen=True, eq=False)
class Call:
    """A call under way."""

    actor: Actor
    future: Any = field(repr=False)


class Cluster:
    """Starts Ray, or joins it, and makes actors in it. Its methods may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        import ray

        self._ray = ray
        self._folder: str | None = None
        common: dict[str, Any] = {"include_dashboard": False, "log_to_driver": True, "configure_logging": False}
        if settings.pools.ray_address:
            ray.init(address=settings.pools.ray_address, **common)
            return
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._folder = str(scratch_folder(settings.directory))
        shutil.rmtree(self._folder, ignore_errors=True)
        # Ray starts as many Python processes at once as it is told of cores: no more than there are actors for.
        asked = settings.pools
        actors = asked.replicas + asked.verifiers + asked.trainer_ranks
        ray.init(num_cpus=actors, object_store_memory=OBJECT_STORE_BYTES, _temp_dir=self._folder, **common)

    def actor(self, kind: type, name: str, *arguments: Any, concurrency: int = 1) -> Actor:
        """Start an actor of that class; its `__init__` runs in its own process and is not waited for. `concurrency`
        is how many of its calls may run at once, each in a thread of its own."""
        handle = self._ray.remote(kind).options(num_cpus=1, max_concurrency=concurrency).remote(*arguments)
        return Actor(name, handle)

    def wait(self, calls: Sequence[Call], seconds: float) -> list[Call]:
        """The calls that have ended, well or not, waiting `seconds` at most for the first."""
        if not calls:
            return []
        done, _ = self._ray.wait([call.future for call in calls], num_returns=1, timeout=seconds)
        ended, _ = self._ray.wait([call.future for call in calls], num_returns=len(calls), timeout=0)
        ready = {*done, *ended}
        return [call for call in calls if call.future in ready]

    def result(self, call: Call) -> Any:
        """The answer to a call; waits for it.

        Raises:
            ActorLost: the actor's process died.
            SystemFailure: the actor raised; with its message.
        """
        try:
            return self._ray.get(call.future)
        except self._ray.exceptions.RayActorError as error:
            raise ActorLost(call.actor, str(error).strip().splitlines()[0]) from error
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise SystemFailure(f"{call.actor.name}: {type(cause).__name__}: {cause}") from error

    def results(self, calls: Sequence[Call]) -> list[Any]:
        """The answers to calls, in order; see `result`. Waits for all of them; of several failures it raises that of an
        actor that died, since others fail because of it."""
        answers, failures = [], []
        for call in calls:
            try:
                answers.append(self.result(call))
            except SystemFailure as failure:
                failures.append(failure)
        if failures:
            raise min(failures, key=lambda failure: not isinstance(failure, ActorLost))
        return answers

    def close(self) -> None:
        """End every actor, and Ray if this cell started it."""
        self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
