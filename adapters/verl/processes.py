"""The probes of one of verl's processes: opened where something is to be written, closed when verl's trainer says so.

verl ends its processes by ending Ray, which asks none of them first.
"""

from collections.abc import Mapping
from typing import Any

from harness.probe import Probe

_OPEN: dict[str, Probe] = {}


def open_probe(name: str) -> Probe:
    """The probe of this process under `name`; the same one whenever it is asked for."""
    if name not in _OPEN:
        _OPEN[name] = Probe.from_environment(name)
    return _OPEN[name]


def close_probes(*_: object) -> None:
    """The run has ended as it should: write the closing notes of this process. Any actor of Ray's can be asked to."""
    while _OPEN:
        _OPEN.popitem()[1].close()


def device_of(cell: Mapping[str, Any], role: str) -> str:
    """The device label of the spans of the role `trainer` or `rollout`: one for both where they take turns on the same
    devices, although they are other processes."""
    return "shared" if cell["layout"]["placement"] == "colocated" else role
