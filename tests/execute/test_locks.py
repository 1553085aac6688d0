import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from harness.errors import PrerequisiteError, UserError
from harness.execute.locks import HARNESS_LOCK, LockJob, compile_lock, lock_jobs, split_torch
from harness.execute.requirement_lock import canonical, inputs_digest, lock_hash, pins
from tests.execute.small_wheel import NAME, VERSION, Shelf

JOBS = {job.target.relative_to(HARNESS_LOCK.parents[1]).as_posix(): job for job in lock_jobs()}
NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,2}(\+cpu|rc1|\.post2)?", fullmatch=True)
MARKERS = st.sampled_from(["", " ; python_version < '3.12'", " ; sys_platform == 'win32'"])
ENTRIES = st.lists(st.tuples(NAMES, VERSIONS, MARKERS, st.integers(1, 3)), unique_by=lambda row: canonical(row[0]))


@given(ENTRIES)
def test_pins_are_read_back_as_written(entries: list[tuple[str, str, str, int]]) -> None:
    lines = ["# a head"]
    for name, version, marker, hashes in entries:
        lines.append(" \\\n".join([f"{name}=={version}{marker}", *["    --hash=sha256:" + "0" * 64] * hashes]))
    markers = {"python_version": "3.11", "python_full_version": "3.11.9", "sys_platform": "linux"}
    assert pins("\n".join(lines), markers) == {
        canonical(name): version for name, version, marker, _ in entries if "win32" not in marker
    }


@pytest.mark.parametrize("name", sorted(JOBS))
def test_a_lock_of_this_repository_is_fresh_hashed_and_of_no_one_machine(name: str) -> None:
    job = JOBS[name]
    text = job.target.read_text(encoding="utf-8")
    assert inputs_digest(text) == job.digest, "pyproject.toml has changed: make locks"
    assert not re.search(r"://|file:|^-|\s/", text, re.MULTILINE)
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for entry in re.split(r"\n(?! )", body.strip()):
        assert re.fullmatch(r"[a-z0-9-]+==\S+( ; .+)? \\(\n    --hash=sha256:[0-9a-f]{64}( \\)?)+", entry), entry[:80]


@pytest.mark.parametrize("name", sorted(JOBS))
def test_a_lock_satisfies_what_it_was_compiled_from(name: str) -> None:
    job = JOBS[name]
    linux = {"sys_platform": "linux", "platform_system": "Linux", "python_version": "3.11"}
    held = pins(job.target.read_text(encoding="utf-8"), linux | {"python_full_version": "3.11.9"})
    for wanted in map(Requirement, job.requirements):
        assert wanted.specifier.contains(held[canonical(wanted.name)], prereleases=True), wanted
    assert not set(job.left_out) & held.keys()
    if job.on_cpu:
        assert held["torch"].endswith("+cpu")
        assert not [package for package in held if package.startswith("nvidia-cu") or package == "triton"]


def test_torch_is_written_for_each_system() -> None:
    cpu, public = "a" * 64, "b" * 64
    text = f"six==1 \\\n    --hash=sha256:{public}\ntorch==2.1+cpu \\\n    --hash=sha256:{cpu}\ntqdm==4 \\\n"
    split = split_torch(text, f"torch==2.1 \\\n    --hash=sha256:{public}\n")
    assert split == (
        f"six==1 \\\n    --hash=sha256:{public}\n"
        f"torch==2.1 ; sys_platform != 'linux' \\\n    --hash=sha256:{public}\n"
        f"torch==2.1+cpu ; sys_platform == 'linux' \\\n    --hash=sha256:{cpu}\ntqdm==4 \\\n"
    )
    assert pins(split, {"sys_platform": "linux"})["torch"] == "2.1+cpu"
    assert pins(split, {"sys_platform": "darwin"})["torch"] == "2.1"
    assert split_torch("six==1\n", public) == "six==1\n"


def test_the_digest_covers_all_that_decides(tmp_path: Path) -> None:
    job = LockJob(("a", "b"), tmp_path / "cpu.txt", "3.11")
    assert job.digest == replace(job, requirements=("b", "a")).digest
    changed = [replace(job, requirements=("a",)), replace(job, python="3.12"), replace(job, left_out=("c",))]
    changed += [replace(job, universal=True), replace(job, overrides=("d",))]
    assert len({other.digest for other in [job, *changed]}) == 6


def test_a_lock_is_compiled_without_a_network(shelf: Shelf, tmp_path: Path) -> None:
    job = LockJob((NAME,), tmp_path / "cpu.txt", "3.11")
    text = compile_lock(job)
    assert inputs_digest(text) == job.digest
    assert pins(text) == {NAME: VERSION}
    assert shelf.sha256 in text
    assert str(tmp_path) not in text
    with pytest.raises(PrerequisiteError):
        compile_lock(replace(job, requirements=(f"{NAME}==9",)))


def test_an_override_wins_over_what_is_asked(shelf: Shelf, tmp_path: Path) -> None:
    job = LockJob((f"{NAME}==9",), tmp_path / "cpu.txt", "3.11", overrides=(f"{NAME}=={VERSION}",))
    assert pins(compile_lock(job)) == {NAME: VERSION}


def test_a_lock_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="make locks"):
        lock_hash(tmp_path / "none.txt")
    assert inputs_digest("six==1\n") is None


def test_every_extra_is_locked_by_someone() -> None:
    content = tomllib.loads((HARNESS_LOCK.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    locked = {job.requirements for job in JOBS.values()}
    unlocked = [
        name for name, extra in content["project"]["optional-dependencies"].items() if tuple(extra) not in locked
    ]
    assert unlocked == ["dev"]  # part of the harness's own lock
