"""Starts Ray's daemons with ports that are told, on a machine that is busy with other work.

Where the agents of a node choose their ports, its raylet waits 15 seconds for each to say which one it took, and ends
where none does (ray-project/ray, issue 65983); `ray.init` has no argument for them.
"""

import functools
import socket
from typing import Any

from harness.probe.hooks import HookPoint

HOOK = HookPoint("ray._private.parameter:RayParams.__init__", "startup", "holds the ports of a node's agents")
PORTS = ("metrics_agent_port", "runtime_env_agent_port", "dashboard_agent_listen_port")


def tell_ports() -> None:
    """Choose the ports of Ray's agents in this process, which then calls `ray.init`."""
    from ray._private.parameter import RayParams

    built = RayParams.__init__

    @functools.wraps(built)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        built(self, *args, **kwargs)
        for name in PORTS:
            setattr(self, name, _free_port())

    RayParams.__init__ = init


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
