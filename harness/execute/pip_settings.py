"""What pip is configured with on this machine, said in uv's words (uv reads none of pip's configuration).

Standard library only, and runnable as a plain file before rlaxes is installed:
`python3 pip_settings.py UV ARGUMENTS...` replaces itself by uv with these settings.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

UV_NAME = {
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
SECTIONS = ("global", "install", ":env:")
"""Sections of pip's configuration that hold for an installation; a later one wins."""
PATHS = {"UV_FIND_LINKS", "UV_CONSTRAINT", "SSL_CERT_FILE", "SSL_CLIENT_CERT"}
TRUE = {"1", "true", "yes", "on"}


def parse_config(listing: str) -> dict[str, str]:
    """The settings that `pip config list` prints (`section.key='value'` a line), by key."""
    found: list[tuple[int, str, str]] = []
    for line in listing.splitlines():
        name, equals, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in SECTIONS:
            found.append((SECTIONS.index(section), key, str(ast.literal_eval(value))))
    return {key: value for _, key, value in sorted(found, key=lambda row: row[0])}


def uv_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that make uv look where pip looks.

    pip takes the best match over all its indexes; uv by default takes the first index that has the name, which would
    hide releases behind a partial mirror, so it is told to do as pip does.
    """
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for key, value in settings.items():
        name = UV_NAME.get(key)
        if name and value.strip():
            words = [_absolute(word) for word in value.split()] if name in PATHS else value.split()
            variables[name] = ("," if name == "UV_FIND_LINKS" else " ").join(words)
    return variables


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """What has no variable and needs an option: pip's `no-index`."""
    return ["--no-index"] if settings.get("no-index", "").lower() in TRUE else []


def _absolute(word: str) -> str:
    """A relative path is relative to where pip was asked; uv is started elsewhere."""
    return word if "://" in word or word.startswith("file:") else str(Path(word).expanduser().absolute())


@cache
def pip_settings() -> Mapping[str, str]:
    """What pip is configured with for this interpreter, or, where it has no pip, for the one it was made from."""
    for python in dict.fromkeys((sys.executable, str(getattr(sys, "_base_executable", sys.executable)))):
        done = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return parse_config(done.stdout)
    return {}


def uv_environment(*, locked: bool = False) -> dict[str, str]:
    """The whole environment for a uv process: ours, and what pip is configured with where ours says nothing to uv.

    Args:
        locked: the process installs from a hashed lock; uv then refuses constraints, and there is nothing to choose.
    """
    variables = uv_variables(pip_settings()) | dict(os.environ)
    dropped = {"VIRTUAL_ENV", "UV_CONSTRAINT"} if locked else {"VIRTUAL_ENV"}
    return {name: value for name, value in variables.items() if name not in dropped}


def uv_command(uv: str, words: Sequence[str]) -> list[str]:
    """The command line of uv with the options that pip's configuration asks for."""
    options = uv_options(pip_settings()) if words[:1] == ["pip"] else []
    return [uv, *words[:2], *options, *words[2:]]


def find_links_wheels(variables: Mapping[str, str], pattern: str) -> list[Path]:
    """Wheels in the configured find-links folders of this machine whose name matches a glob."""
    words = [word for word in variables.get("UV_FIND_LINKS", "").split(",") if word]
    folders = [
        Path(unquote(urlsplit(word).path)) if word.startswith("file:") else Path(word)
        for word in words
        if word.startswith("file:") or "://" not in word
    ]
    return [wheel for folder in folders if folder.is_dir() for wheel in sorted(folder.glob(pattern))]


if __name__ == "__main__":
    command = uv_command(sys.argv[1], sys.argv[2:])
    os.execvpe(command[0], command, uv_environment(locked="--require-hashes" in command))  # noqa: S606
