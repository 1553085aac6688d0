"""Locks of other versions of a framework: compiled from what the adapter's own lock is compiled from, with nothing but
the framework's requirement replaced, and with every other version of the adapter's lock kept where it still satisfies.
"""

import hashlib
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import parse_wheel_filename

from harness.errors import PrerequisiteError, UserError
from harness.execute.adapter import Adapter
from harness.execute.git_wheels import wheel_of, without_password
from harness.execute.locks import LockJob, adapter_job, compile_lock, read_project
from harness.execute.requirement_lock import canonical, inputs_digest, pins
from harness.execute.uv_process import Say, UvError
from harness.execute.version import SHORT, Version, versions_folder


def release_version(adapter: Adapter, variant: str, release: str, say: Say, also: Sequence[str] = ()) -> Version:
    """A release of the adapter's framework; the adapter's own lock where that holds it.

    Args:
        also: requirements that the lock holds besides, e.g. what a release imports and forgot to ask for.

    Raises:
        UserError: nobody says here what the own lock is compiled from, or what is to be besides is no requirement.
        PrerequisiteError: no index has the release, or it cannot be had beside what the adapter pins.
    """
    job, own = _job(adapter, variant, also)
    text = own.read_text(encoding="utf-8") if own.is_file() else ""
    held = pins(text).get(_package(adapter))
    if held == release and inputs_digest(text) == job.digest:
        return Version(release, release, "release", release, own)
    lock = _compiled(adapter, _replaced(adapter, job, f"=={release}"), own, say)
    exact = pins(lock.read_text(encoding="utf-8"))[_package(adapter)]
    if exact != release:  # 1.15 is 1.15.0, and has one lock
        return release_version(adapter, variant, exact, say, also)
    return Version(release, release, "release", release, lock)


def git_version(adapter: Adapter, variant: str, url: str, ref: str, say: Say, also: Sequence[str] = ()) -> Version:
    """The framework at a git revision, built into a wheel here. The lock holds the hash of that wheel and of everything
    else; not the build: what the framework asks for to be built with is taken as the index has it.

    Raises:
        UserError: as of a release.
        PrerequisiteError: it cannot be fetched, built, or had beside what the adapter pins.
    """
    job, own = _job(adapter, variant, also)
    wheel, commit = wheel_of(adapter, url, ref, say)
    lock = _compiled(adapter, _replaced(adapter, job, f" @ {wheel.as_uri()}"), own, say)
    unhashed = f"the build of the wheel from {commit[:SHORT]}: the wheel that was built here is in the lock by its hash"
    release = str(parse_wheel_filename(wheel.name)[1])
    word = f"{without_password(url)}@{ref}"
    return Version(f"git-{commit[:SHORT]}", word, "git", release, lock, commit=commit, unhashed=unhashed)


def lock_version(adapter: Adapter, variant: str, path: Path) -> Version:
    """What a lock holds, whoever made it. It is copied: a run has to be taken up again with what it began with.

    Raises:
        UserError: the adapter runs without a lock, or the file is none, or has no hashes.
    """
    own = adapter.lock(variant)
    if own is None:
        raise UserError(f"adapter {adapter.name} runs in the harness's own interpreter: it has no lock to replace")
    content = path.read_bytes()
    text = content.decode("utf-8", "replace")
    if not pins(text) or "--hash=sha256:" not in text:
        raise UserError(f"{path} is no lock: it has to pin every package with `==` and its --hash=sha256:...")
    digest = hashlib.sha256(content).hexdigest()[:SHORT]
    lock = versions_folder(adapter.name) / f"lock-{digest}" / own.name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(content)
    release = pins(text).get(_package(adapter), str(adapter.spec["version"]))
    return Version(f"lock-{digest}", path.name, "lock", release, lock)


def _package(adapter: Adapter) -> str:
    return canonical(str(adapter.spec.get("package", adapter.package)))


def _job(adapter: Adapter, variant: str, also: Sequence[str]) -> tuple[LockJob, Path]:
    """What the adapter's own lock is compiled from, and more, and that lock.

    Raises:
        UserError: see above.
    """
    own = adapter.lock(variant)
    job = adapter_job(adapter, variant, read_project())
    if job is None or own is None:
        raise UserError(
            f"nothing here says what the lock of {adapter.name} is compiled from: run it in a checkout of rlaxes, or "
            "give the path of a lock"
        )
    for word in also:
        try:
            Requirement(word)
        except InvalidRequirement:
            raise UserError(f"--with {word}: that is no requirement; write e.g. requests, or requests>=2.32") from None
    return replace(job, requirements=(*job.requirements, *also)), own


def _replaced(adapter: Adapter, job: LockJob, what: str) -> LockJob:
    """The job with the framework's own requirement replaced; its extras stay."""
    own = next((r for r in map(Requirement, job.requirements) if canonical(r.name) == _package(adapter)), None)
    if own is None:
        raise UserError(f"{_package(adapter)} is not among the requirements of {adapter.name}: give the path of a lock")
    extras = f"[{','.join(sorted(own.extras))}]" if own.extras else ""
    out = [text for text in job.requirements if canonical(Requirement(text).name) != _package(adapter)]
    wanted = (f"{own.name}{extras}{what}", *out)
    return replace(job, requirements=wanted, made_by=f"`rlaxes track adapter={adapter.name}`")


def _compiled(adapter: Adapter, job: LockJob, own: Path, say: Say) -> Path:
    """The lock of a job, compiled now if it is not there: the same requirements and the same own lock give the same."""
    before = _others(adapter, own.read_text(encoding="utf-8")) if own.is_file() else ""
    digest = hashlib.sha256(f"{job.digest} {before}".encode()).hexdigest()[:SHORT]
    lock = versions_folder(adapter.name) / digest / own.name
    if lock.is_file():
        return lock
    say(f"compiling a lock of {adapter.name} from {', '.join(job.requirements)}")
    lock.parents[1].mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=lock.parents[1]) as name:
        target = Path(name) / own.name
        target.write_text(before, encoding="utf-8")  # uv keeps the versions that it finds there
        try:
            text = compile_lock(replace(job, target=target))
        except UvError as error:
            raise PrerequisiteError(f"no lock of {adapter.name} with {', '.join(job.requirements)}: {error}") from error
        target.write_text(text, encoding="utf-8")
        lock.parent.mkdir(exist_ok=True)
        target.replace(lock)
    return lock


def _others(adapter: Adapter, text: str) -> str:
    """A lock without the entry of the framework: uv would take its hashes over for a wheel of the same version."""
    entries = re.split(r"\n(?! )", text)
    return "\n".join(entry for entry in entries if canonical(re.split(r"[=@ ]", entry)[0]) != _package(adapter))
