"""What a user calls a version becomes a lock and sources; the same words give the same."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import PrerequisiteError, UserError
from harness.execute import checkouts
from harness.execute.adapter import Adapter, find_adapter
from harness.execute.checkouts import code_hash
from harness.execute.environment_diff import diff_environment
from harness.execute.environments import ensure_environment
from harness.execute.git_wheels import without_password
from harness.execute.locks import LockJob, compile_lock
from harness.execute.requirement_lock import pins
from harness.execute.uv_process import mute
from harness.execute.version import Version, lock_body_hash
from harness.execute.versions import differing_packages, find_version, repository_of, url_and_ref
from tests.execute.planted import planted_repository
from tests.execute.small_wheel import NAME, VERSION, Shelf

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
BACKEND = """
import pathlib, shutil, small_wheel

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = pathlib.Path(wheel_directory, "built")
    small_wheel.build_shelf(folder)
    wheel = next(folder.glob("*.whl"))
    shutil.move(wheel, wheel_directory)
    return wheel.name
"""
BUILD = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def small(shelf: Shelf, tmp_path: Path) -> Adapter:
    """An adapter of somebody else's whose framework is the small package, with its own lock compiled."""
    folder = tmp_path / "small_adapter"
    profiles = {"cpu": {"lock": "locks/cpu.txt", "requires": [f"{NAME}=={VERSION}"]}, "bare": {"lock": None}}
    spec: dict[str, Any] = {"package": NAME, "version": VERSION, "python": PYTHON, "profiles": profiles, "sources": []}
    adapter = Adapter("small", "small_adapter", folder, spec)
    target = folder / "locks" / "cpu.txt"
    target.parent.mkdir(parents=True)
    target.write_text(compile_lock(LockJob((f"{NAME}=={VERSION}",), target, PYTHON)), encoding="utf-8")
    return adapter


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_repository(tmp_path_factory.mktemp("planted") / "repository")


@pytest.fixture
def fake(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    monkeypatch.setattr(checkouts, "ROOT", repository)
    monkeypatch.setenv("RLAXES_CACHE", str(tmp_path / "cache"))
    return find_adapter("fake")


def _find(adapter: Adapter, word: str) -> Version:
    return find_version(adapter, "cpu", word, mute)


def test_the_release_that_an_adapter_pins_is_its_own_lock(small: Adapter) -> None:
    found = _find(small, VERSION)
    assert found.lock == small.lock("cpu")
    assert (found.name, found.release, found.kind) == (VERSION, VERSION, "release")


def test_another_release_is_compiled_once_from_the_same_requirements(small: Adapter, tmp_path: Path) -> None:
    small.spec["profiles"]["cpu"]["requires"] = [f"{NAME}>=0.5"]
    first, second = _find(small, VERSION), _find(small, VERSION)
    assert first.lock != small.lock("cpu"), "the adapter's own was compiled from something else"
    assert first == second == _find(small, f"{VERSION}.0"), "an index calls them the same"
    assert first.lock is not None
    assert first.lock.is_relative_to(tmp_path / "cache" / "versions" / "small")
    assert first.lock.name == "cpu.txt", "by its name uv knows that torch is to be the CPU build"
    assert pins(first.lock.read_text(encoding="utf-8")) == {NAME: VERSION}


def test_what_a_release_forgot_to_ask_for_can_be_added(small: Adapter) -> None:
    found = find_version(small, "cpu", VERSION, mute, [f"{NAME}>=0.1"])
    assert found.lock != small.lock("cpu")
    assert found.hash == _find(small, VERSION).hash, "here it added nothing"
    with pytest.raises(UserError, match="--with no requirement: that is no requirement"):
        find_version(small, "cpu", VERSION, mute, ["no requirement"])


def test_a_release_that_no_index_has_is_a_missing_prerequisite(small: Adapter) -> None:
    with pytest.raises(PrerequisiteError, match=f"{NAME}==9.9"):
        _find(small, "9.9")


@pytest.mark.parametrize("word", ["newest", "trl==1.15.0", "git:", "git+here", "1.15.0.txt"])
def test_words_that_name_no_version(small: Adapter, word: str) -> None:
    with pytest.raises(UserError, match="names no version of small: write a release"):
        _find(small, word)


def test_a_lock_is_copied_so_that_a_run_can_be_taken_up_with_it(small: Adapter, shelf: Shelf, tmp_path: Path) -> None:
    given = shelf.lock(tmp_path / "other.txt", head="# mine\n")
    found = _find(small, str(given))
    assert found.lock is not None
    assert found.lock.read_bytes() == given.read_bytes()
    assert found.kind == "lock"
    assert found.release == VERSION
    assert found.hash == _find(small, VERSION).hash, "comments decide nothing"
    del small.spec["package"]
    assert _find(small, str(given)).release == small.spec["version"], "it drives no framework, and has a lock"
    given.write_text(f"{NAME}=={VERSION}\n", encoding="utf-8")
    with pytest.raises(UserError, match="is no lock: it has to pin every package"):
        _find(small, str(given))
    with pytest.raises(UserError, match="has no lock to replace"):
        find_version(small, "bare", str(shelf.lock(tmp_path / "more.txt")), mute)


def test_a_git_revision_is_built_and_its_wheel_is_held_by_hash(small: Adapter, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    shutil.copyfile(Path(__file__).with_name("small_wheel.py"), source / "small_wheel.py")
    (source / "small_wheel.py").write_text((source / "small_wheel.py").read_text().replace("VALUE = 1", "VALUE = 2"))
    (source / "backend.py").write_text(BACKEND, encoding="utf-8")
    (source / "pyproject.toml").write_text(BUILD + f'[project]\nname = "{NAME}"\nversion = "{VERSION}"\n')
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@invalid")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first"), ("tag", "v1")):
        subprocess.run(["git", "-C", str(source), *who, *words], check=True)
    found = _find(small, f"git+file://{source}@v1")
    assert found.commit is not None
    assert found.name == f"git-{found.commit[:9]}"
    assert found.release == VERSION
    assert "the build of the wheel" in found.unhashed
    assert found.lock is not None
    text = found.lock.read_text(encoding="utf-8")
    (wheel,) = found.lock.parents[1].glob(f"{found.commit}/*.whl")
    assert f"--hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" in text
    assert pins(text) == {NAME: VERSION}
    assert _find(small, f"git+file://{source}@{found.commit}").lock == found.lock
    environment = ensure_environment("small", found.lock, PYTHON, mute)
    assert diff_environment(environment) == []
    with pytest.raises(PrerequisiteError, match="git fetch of"):
        _find(small, f"git+file://{source}@v2")


WORDS = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3), st.lists(WORDS, max_size=3), st.sampled_from(["", "a@", "a:b@"]))
@settings(max_examples=50)
def test_a_git_url_and_its_revision_are_told_apart(host: str, path: list[str], ref: list[str], name: str) -> None:
    url = f"https://{name}{host}/{'/'.join(path)}"
    assert url_and_ref(url) == (url, "HEAD")
    if ref:
        assert url_and_ref(f"{url}@{'/'.join(ref)}") == (url, "/".join(ref))
    assert without_password(url) == f"https://{host}/{'/'.join(path)}"


def test_the_repository_of_a_framework_is_read_from_its_sources(small: Adapter) -> None:
    assert repository_of(find_adapter("trl")) == "https://github.com/huggingface/trl"
    with pytest.raises(UserError, match=r"write git\+URL@REF"):
        repository_of(small)


def test_every_package_that_differs_is_told(tmp_path: Path) -> None:
    texts = ("trl==1.16.0\nsix==1\n", "trl==1.15.0\nsix==1\ntqdm==4\n")
    sides = []
    for number, text in enumerate(texts):
        lock = tmp_path / f"{number}.txt"
        lock.write_text(text, encoding="utf-8")
        sides.append(Version(str(number), "", "lock", "", lock))
    assert differing_packages(*sides) == [
        {"package": "tqdm", "pin": None, "candidate": "4"},
        {"package": "trl", "pin": "1.16.0", "candidate": "1.15.0"},
    ]
    assert differing_packages(sides[0], sides[0]) == []


def test_a_lock_without_its_comments_is_the_same() -> None:
    assert lock_body_hash("# a\n\nsix==1 \\\n") == lock_body_hash("six==1 \\\n# b")
    assert lock_body_hash("six==1") != lock_body_hash("six==2")


def test_a_revision_is_laid_out_with_what_a_cell_imports(fake: Adapter, repository: Path) -> None:
    found = _find(fake, "slow")
    assert found.source is not None
    assert found.lock is None
    assert '"decode": 1.05' in (found.source / "adapters" / "fake" / "truth.py").read_text(encoding="utf-8")
    assert sorted(path.name for path in (found.source / "harness").iterdir() if path.is_dir()) == sorted(
        checkouts.ROOMS
    )
    assert not (found.source / "docs").exists()
    assert _find(fake, "slow") == found
    assert found.commit is not None
    assert found.name == found.commit[:9]


def test_only_what_cells_do_tells_revisions_apart(fake: Adapter) -> None:
    base = _find(fake, "base").hash
    assert _find(fake, "page").hash == base
    assert _find(fake, "comment").hash == base
    slow = _find(fake, "slow")
    assert slow.hash != base
    assert slow.source is not None
    compiled = slow.source / "adapters" / "fake" / "__pycache__" / "truth.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"by a cell")
    assert _find(fake, "slow").hash == slow.hash


def test_a_revision_that_is_none_and_one_without_the_adapter(fake: Adapter) -> None:
    with pytest.raises(UserError, match="'yesterday' is no revision of this checkout"):
        _find(fake, "yesterday")
    with pytest.raises(UserError, match="fake cannot be laid out at"):
        _find(fake, "gone")


def test_python_that_does_not_parse_is_code_too(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def (", encoding="utf-8")
    before = code_hash(tmp_path)
    (tmp_path / "a.py").write_text("def ((", encoding="utf-8")
    assert code_hash(tmp_path) != before
