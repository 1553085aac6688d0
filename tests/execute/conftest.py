"""A cache, a shelf of packages and a uv that are the test's own."""

from pathlib import Path

import pytest

from tests.execute.small_wheel import Shelf, build_shelf


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The small package on a shelf that uv looks at, offline; environments go into the test's own folder.

    uv's own cache is the test's too: a test that edits installed files would edit the user's through hard links.
    """
    built = build_shelf(tmp_path / "shelf")
    monkeypatch.setenv("RLAXES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_FIND_LINKS", str(built.folder))
    monkeypatch.setenv("UV_OFFLINE", "1")
    return built
