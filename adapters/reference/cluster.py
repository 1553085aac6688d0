"""The processes of a disaggregated cell: Ray actors, on this machine with nothing to start by hand, or on a cluster."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

from adapters.reference.settings import Settings
from harness.errors import SystemFailure

# Sockets lie below it, and a socket's path has 107 characters at most.
TEMPORARY_PREFIX = "rlx-"
OBJECT_STORE_BYTES = 128 << 20
MAX_ACTORS = 64


class ActorLost(SystemFailure):
    """An actor's process died. `name` says whose."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} died: {why}")
        self.name = name


class Actor:
    """A handle to one actor; its calls return futures, which `Cluster.results` turns into answers."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name, self._handle = name, handle

    def call(self, method: str, *arguments: Any) -> Any:
        """Start a call; the future comes back at once."""
        return getattr(self._handle, method).remote(*arguments)


class Cluster:
    """Starts Ray, or joins it, and makes actors in it."""

    def __init__(self, settings: Settings) -> None:
        import ray

        self._ray = ray
        self._names: dict[Any, str] = {}
        self._folder = None
        common: dict[str, Any] = {"include_dashboard": False, "log_to_driver": True, "configure_logging": False}
        if settings.pools.ray_address:
            ray.init(address=settings.pools.ray_address, **common)
            return
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._folder = tempfile.mkdtemp(prefix=TEMPORARY_PREFIX)
        ray.init(num_cpus=MAX_ACTORS, object_store_memory=OBJECT_STORE_BYTES, _temp_dir=self._folder, **common)

    def actor(self, kind: type, name: str, *arguments: Any) -> Actor:
        """Start an actor of that class; its `__init__` runs in its own process and is not waited for."""
        handle = self._ray.remote(kind).options(num_cpus=1, max_concurrency=1).remote(*arguments)
        return Actor(name, handle)

    def results(self, calls: Sequence[tuple[Actor, Any]]) -> list[Any]:
        """The answers to calls, in order; waits for all of them.

        Raises:
            ActorLost: an actor's process died.
            SystemFailure: an actor raised; with its message.
        """
        return [self._result(actor, future) for actor, future in calls]

    def close(self) -> None:
        """End every actor, and Ray if this cell started it."""
        self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _result(self, actor: Actor, future: Any) -> Any:
        try:
            return self._ray.get(future)
        except self._ray.exceptions.RayActorError as error:
            raise ActorLost(actor.name, str(error).splitlines()[0]) from error
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise SystemFailure(f"{actor.name}: {type(cause).__name__}: {cause}") from error
