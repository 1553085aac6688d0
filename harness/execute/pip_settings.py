"""What pip is configured with on this machine, said in uv's words (uv reads none of pip's configuration).

Standard library only, and runnable as a plain file before rlaxes is installed:
`python3 pip_settings.py UV ARGUMENTS...` replaces itself by uv with the settings in its environment.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

UV_NAME = {
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
COMMA = {"UV_FIND_LINKS"}


def parse_config(listing: str) -> dict[str, str]:
    """The settings that `pip config list` prints, by name; one from the environment wins over one from a file."""
    settings: dict[str, str] = {}
    ordered = sorted(listing.splitlines(), key=lambda line: line.startswith(":env:."))
    for line in ordered:
        name, equals, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in {"global", "install", ":env:", "download"}:
            settings[key] = str(ast.literal_eval(value))
    return settings


def uv_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that make uv look where pip looks.

    pip takes the best match over all its indexes; uv by default takes the first index that has the name, which would
    hide releases behind a partial mirror, so it is told to do as pip does.
    """
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for key, value in settings.items():
        name = UV_NAME.get(key)
        if name and value:
            words = value.split()
            variables[name] = ",".join(words) if name in COMMA else " ".join(words)
    return variables


def settings_of(python: str) -> dict[str, str]:
    """What pip of an interpreter is configured with; empty where it has no pip."""
    done = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    return parse_config(done.stdout) if done.returncode == 0 else {}


def uv_environment(python: str = sys.executable) -> dict[str, str]:
    """The whole environment for a uv process: ours, and what pip is configured with where ours does not say."""
    return uv_variables(settings_of(python)) | dict(os.environ)


def find_links_wheels(variables: Mapping[str, str], pattern: str) -> list[Path]:
    """Wheels in the configured find-links folders whose name matches a glob."""
    folders = [Path(word) for word in variables.get("UV_FIND_LINKS", "").split(",") if word and "://" not in word]
    return [wheel for folder in folders if folder.is_dir() for wheel in sorted(folder.glob(pattern))]


if __name__ == "__main__":
    os.execvpe(sys.argv[1], sys.argv[1:], uv_environment())  # noqa: S606
