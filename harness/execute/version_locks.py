"""Locks of other versions of a framework: compiled from what the adapter's own lock is compiled from, with nothing but
the framework's requirement replaced, and with every other version of the adapter's lock kept where it still satisfies.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import parse_wheel_filename

from harness.errors import PrerequisiteError, UserError
from harness.execute.adapter import Adapter
from harness.execute.environments import cache_folder, interpreter_of
from harness.execute.locks import LockJob, adapter_job, compile_lock, read_project
from harness.execute.requirement_lock import canonical, inputs_digest, pins
from harness.execute.uv_process import Say, UvError, run_uv
from harness.execute.version import SHORT, Version

COMMIT = re.compile(r"[0-9a-f]{40}")
FETCH_SECONDS = 600


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
    wheel, commit = _wheel(adapter, url, ref, say)
    lock = _compiled(adapter, _replaced(adapter, job, f" @ {wheel.as_uri()}"), own, say)
    unhashed = f"the build of the wheel from {commit[:SHORT]}: the wheel that was built here is in the lock by its hash"
    release = str(parse_wheel_filename(wheel.name)[1])
    return Version(f"git-{commit[:SHORT]}", f"{url}@{ref}", "git", release, lock, commit=commit, unhashed=unhashed)


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
    lock = _folder(adapter, f"lock-{digest}") / own.name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(content)
    release = pins(text).get(_package(adapter), str(adapter.spec["version"]))
    return Version(f"lock-{digest}", path.name, "lock", release, lock)


def _package(adapter: Adapter) -> str:
    return canonical(str(adapter.spec.get("package", adapter.package)))


def _folder(adapter: Adapter, name: str) -> Path:
    return cache_folder() / "versions" / adapter.name / name


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
    out = []
    for text in job.requirements:
        wanted = Requirement(text)
        if canonical(wanted.name) == _package(adapter):
            extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
            text = f"{wanted.name}{extras}{what}"
        out.append(text)
    if tuple(out) == job.requirements and not any(what in text for text in out):
        raise UserError(f"{_package(adapter)} is not among the requirements of {adapter.name}: give the path of a lock")
    return replace(job, requirements=tuple(out), made_by=f"`rlaxes track adapter={adapter.name}`")


def _compiled(adapter: Adapter, job: LockJob, own: Path, say: Say) -> Path:
    """The lock of a job, compiled now if it is not there: the same requirements and the same own lock give the same."""
    before = _others(adapter, own.read_text(encoding="utf-8")) if own.is_file() else ""
    digest = hashlib.sha256(f"{job.digest} {before}".encode()).hexdigest()[:SHORT]
    lock = _folder(adapter, digest) / own.name
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


def _wheel(adapter: Adapter, url: str, ref: str, say: Say) -> tuple[Path, str]:
    """The wheel of a revision, built now if it is not there, and its commit."""
    if COMMIT.fullmatch(ref) and (built := list(_folder(adapter, ref).glob("*.whl"))):
        return built[0], ref
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        _git(source, url, "init", "--quiet")
        say(f"fetching {ref} of {url}")
        _git(source, url, "fetch", "--quiet", "--depth", "1", "--end-of-options", url, ref)
        commit = _git(source, url, "rev-parse", "FETCH_HEAD^{commit}")
        folder = _folder(adapter, commit)
        if not list(folder.glob("*.whl")):
            _git(source, url, "checkout", "--quiet", commit)
            say(f"building a wheel of {adapter.name} from {commit[:SHORT]}")
            made = source / "rlaxes-wheel"
            stamp = _git(source, url, "log", "-1", "--format=%ct")
            words = ["build", "--wheel", "--python", interpreter_of(adapter.spec["python"]), "--out-dir", str(made)]
            run_uv([*words, str(source)], say, source, also={"SOURCE_DATE_EPOCH": stamp})
            folder.mkdir(parents=True, exist_ok=True)
            for wheel in made.glob("*.whl"):
                shutil.copyfile(wheel, folder / f"{wheel.name}.partial")
                (folder / f"{wheel.name}.partial").replace(folder / wheel.name)
        return next(folder.glob("*.whl")), commit


def _git(folder: Path, url: str, *words: str) -> str:
    """Run git; it asks nobody for a password.

    Raises:
        PrerequisiteError: it failed, with its last line.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=FETCH_SECONDS,
            env=os.environ | {"GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1:]
        raise PrerequisiteError(f"git {words[0]} of {url} failed: {' '.join(said)}") from error
    return done.stdout.strip()
