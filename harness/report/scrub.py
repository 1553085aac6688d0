"""Takes out of a text what belongs to one machine or person: absolute paths, the host's name, the user's name."""

import getpass
import re
import socket
from typing import Any

PATH = re.compile(r"(?:https?://[^\s\"'<>]+)|(?:(?<![\w.~])(?:~|/)(?:[\w.+@~-]*/)+([\w.+@~-]*))")
SHORTEST_NAME = 4
"""Names shorter than this, and `root`, are words of their own and stay."""


def own_names() -> list[str]:
    """The names of this host and this user."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    host = socket.gethostname()
    names = {host, host.split(".")[0], user} - {"root", "localhost"}
    return sorted((name for name in names if len(name) >= SHORTEST_NAME), key=len, reverse=True)


def scrub_text(text: str, names: list[str]) -> str:
    """A path becomes its last part behind `<path>/`; web addresses stay."""
    clean = PATH.sub(lambda match: match[0] if match[0].startswith("http") else f"<path>/{match[1]}", text)
    for name in names:
        clean = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "<name>", clean)
    return clean


def scrub(content: Any, names: list[str] | None = None) -> Any:
    """Plain data with every text in it scrubbed, keys too."""
    names = own_names() if names is None else names
    if isinstance(content, str):
        return scrub_text(content, names)
    if isinstance(content, dict):
        return {scrub(key, names): scrub(value, names) for key, value in content.items()}
    if isinstance(content, list):
        return [scrub(value, names) for value in content]
    return content
