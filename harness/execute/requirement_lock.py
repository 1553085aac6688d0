"""Reads a requirement lock: what it pins, and what it was compiled from."""

import hashlib
import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

from harness.errors import UserError

INPUTS = re.compile(r"^# inputs sha256: (?P<digest>[0-9a-f]{64})$", re.MULTILINE)
ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)(?P<rest>[^\n]*)", re.MULTILINE)

BUILT = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*) @ file:\S*/(?P<wheel>[^/\s]+\.whl)", re.MULTILINE)
"""A wheel that was built on this machine, in the lock of a git revision."""


def lock_hash(lock: Path) -> str:
    """The SHA-256 of a lock file.

    Raises:
        UserError: there is no such file.
    """
    if not lock.is_file():
        raise UserError(f"there is no lock {lock}: compile it with `make locks`")
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def canonical(name: str) -> str:
    """A distribution's name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str, markers: dict[str, str] | None = None) -> dict[str, str]:
    """Version by canonical name.

    Args:
        text: a lock.
        markers: values of environment markers (PEP 508) that differ from this interpreter's; entries whose marker is
            false there are left out.
    """
    found = {}
    for entry in ENTRY.finditer(text):
        condition = entry["rest"].rstrip("\\ ").strip()
        requirement = Requirement(f"{entry['name']}=={entry['version']} {condition}")
        if requirement.marker is None or requirement.marker.evaluate(markers):
            found[canonical(entry["name"])] = entry["version"]
    return found | {canonical(e["name"]): str(parse_wheel_filename(e["wheel"])[1]) for e in BUILT.finditer(text)}


def inputs_digest(text: str) -> str | None:
    """The digest of what a lock was compiled from, as its head says; None in a lock from elsewhere."""
    match = INPUTS.search(text)
    return match["digest"] if match else None
