"""From what a user calls a version (a release, a git revision, a lock) to the code that a cell runs: lock and sources.

Everything that is made lies in the user's cache folder, by a hash over what it was made from: the same words give the
same files, and a run is taken up again with them.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from packaging.version import InvalidVersion
from packaging.version import Version as Release

from harness.errors import UserError
from harness.execute.adapter import Adapter
from harness.execute.checkouts import checkout_version
from harness.execute.requirement_lock import canonical, pins
from harness.execute.uv_process import Say
from harness.execute.version import Version
from harness.execute.version_locks import git_version, lock_version, release_version

GIT = re.compile(r"git\+\w+://\S+$")
REPOSITORY = re.compile(r"https://(?:github|gitlab)\.com/[\w.-]+/[\w.-]+")


def find_version(adapter: Adapter, variant: str, word: str, say: Say, also: Sequence[str] = ()) -> Version:
    """The version that a word names, with its lock compiled or its sources laid out.

    Args:
        variant: the profile of the adapter whose lock it is a version of, e.g. `cpu`.
        word: a path of a lock; of an adapter that drives a framework a release (`1.15.0`), `git:REF` or
            `git+URL@REF`; of one of rlaxes' own (reference, fake) a git revision of this checkout.
        say: receives what is being done.
        also: requirements that a compiled lock holds besides; others hold what they hold.

    Raises:
        UserError: it is none of these, or there is no such revision.
        PrerequisiteError: it could not be fetched, built, or resolved.
    """
    if Path(word).is_file():
        return lock_version(adapter, variant, Path(word))
    if not drives_framework(adapter):
        return checkout_version(adapter, variant, word)
    if GIT.match(word):
        return git_version(adapter, variant, *url_and_ref(word.removeprefix("git+")), say, also)
    if word.startswith("git:") and len(word) > len("git:"):
        return git_version(adapter, variant, repository_of(adapter), word.removeprefix("git:"), say, also)
    try:
        release = str(Release(word))
    except InvalidVersion:
        raise UserError(
            f"'{word}' names no version of {adapter.name}: write a release (1.15.0), git:REF, git+URL@REF, "
            "or the path of a lock"
        ) from None
    return release_version(adapter, variant, release, say, also)


def url_and_ref(text: str) -> tuple[str, str]:
    """The repository and the revision of `URL@REF`: the `@` is the last of the path, one before the host is a name's;
    without one the revision is `HEAD`."""
    parts = urlsplit(text)
    path, at, ref = parts.path.rpartition("@")
    return (urlunsplit(parts._replace(path=path)), ref) if at and ref else (text, "HEAD")


def drives_framework(adapter: Adapter) -> bool:
    """Whether it holds on to somebody else's package, whose releases are what is tracked."""
    return str(adapter.spec.get("package", adapter.package)) != adapter.package


def repository_of(adapter: Adapter) -> str:
    """The git url of its framework: the first of its sources that lies on GitHub or GitLab.

    Raises:
        UserError: it names none.
    """
    for source in adapter.spec.get("sources") or ():
        if match := REPOSITORY.match(str(source)):
            return match[0]
    raise UserError(f"{adapter.name} names no repository among its sources: write git+URL@REF")


def differing_packages(pin: Version, candidate: Version) -> list[dict[str, Any]]:
    """Every package that the two locks hold in another version, or only one of them holds; what else than the framework
    may have moved a figure."""
    held = [pins(side.lock.read_text(encoding="utf-8")) if side.lock else {} for side in (pin, candidate)]
    names = sorted(held[0].keys() | held[1].keys(), key=canonical)
    rows = ({"package": name, "pin": held[0].get(name), "candidate": held[1].get(name)} for name in names)
    return [row for row in rows if row["pin"] != row["candidate"]]
