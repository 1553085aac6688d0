"""What an environment has otherwise than its lock says: packages, and files that were edited after installation."""

import json
import subprocess
from typing import Any

from harness.execute.environments import Environment
from harness.execute.requirement_lock import canonical, pins

INSPECT_SECONDS = 300
SHOWN_FILES = 3

# Runs inside the environment. Sources are compared by hash and everything else by size alone, which takes a second for
# gigabytes; bytecode is compiled anew here and not compared, and a file that two packages claim is judged by neither.
# RECORD is read here, since importlib.metadata's own `files` parses the package's metadata anew for each file.
INSPECT = """
import base64, collections, csv, hashlib, importlib.metadata, json, os, platform
found, owners, files = {}, collections.Counter(), []
for package in importlib.metadata.distributions():
    name = package.name
    found[name] = package.version
    for file, sign, size in csv.reader((package.read_text("RECORD") or "").splitlines()):
        owners[file] += 1
        if sign and not file.startswith("..") and not file.endswith(".pyc"):
            files.append((name, file, os.path.join(package.locate_file(""), file), sign, size))
def differs(path, sign, size):
    try:
        if not path.endswith(".py"):
            return bool(size) and os.stat(path).st_size != int(size)
        kind, _, value = sign.partition("=")
        with open(path, "rb") as file:
            digest = hashlib.new(kind, file.read()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != value
    except OSError:
        return True
edited = [(name, file) for name, file, *rest in files if owners[file] == 1 and differs(*rest)]
print(json.dumps({"installed": found, "edited": edited, "python": platform.python_version()}))
"""


def diff_environment(environment: Environment) -> list[str]:
    """One line for each package that is missing, in excess, in another version, or edited; empty where all agree."""
    command = [str(environment.python), "-I", "-c", INSPECT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=INSPECT_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        return [f"its Python does not run: {said[-1] if said else error}"]
    seen = json.loads(done.stdout)
    return _packages(environment, seen) + _edited(seen["edited"])


def _packages(environment: Environment, seen: dict[str, Any]) -> list[str]:
    release = seen["python"]
    markers = {"python_full_version": release, "python_version": ".".join(release.split(".")[:2])}
    wanted = pins(environment.lock.read_text(encoding="utf-8"), markers)
    installed = {canonical(name): version for name, version in seen["installed"].items()}
    lines = [f"{name} {wanted[name]} is missing" for name in sorted(wanted.keys() - installed.keys())]
    lines += [f"{name} {installed[name]} is not in the lock" for name in sorted(installed.keys() - wanted.keys())]
    return lines + [
        f"{name} is {installed[name]} where the lock says {wanted[name]}"
        for name in sorted(wanted.keys() & installed.keys())
        if installed[name] != wanted[name]
    ]


def _edited(pairs: list[list[str]]) -> list[str]:
    by_package: dict[str, list[str]] = {}
    for package, file in pairs:
        by_package.setdefault(package, []).append(file)
    return [
        f"{package}: {len(files)} files differ from what was installed ({', '.join(files[:SHOWN_FILES])})"
        for package, files in sorted(by_package.items())
    ]
