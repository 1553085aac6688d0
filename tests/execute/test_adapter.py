"""Adapters as they are found: a broken one costs no other its place, and is told by name."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.execute.adapter import NEEDED, find_adapter, find_adapters, look_for_adapters
from harness.execute.compose import compose_choices

Install = Callable[[str, str, str | None], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with an entry point, by hand: (entry's name, package, its adapter.yaml or None)."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(entry: str, package: str, spec: str | None) -> None:
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[rlaxes.adapters]\n{entry} = {package}\n", encoding="utf-8")
        if spec is not None:
            (tmp_path / package).mkdir()
            (tmp_path / package / "__init__.py").touch()
            (tmp_path / package / "driver.py").touch()
            (tmp_path / package / "adapter.yaml").write_text(spec, encoding="utf-8")
        look_for_adapters.cache_clear()

    yield put
    look_for_adapters.cache_clear()


def _spec(name: str, **more: str) -> str:
    said = dict.fromkeys(NEEDED, "{}") | {"name": name, "python": "'3.11'", "layouts": "[colocated_sync]"} | more
    return "\n".join(f"{key}: {value}" for key, value in said.items())


def test_an_installed_adapter_is_one_like_any_other(install: Install) -> None:
    install("outside", "outside_package", _spec("outside", profiles="{cpu: {lock: null}}", options="{depth: 3}"))
    assert find_adapter("outside").package == "outside_package"
    assert not find_adapter("outside").built_in
    (choice,) = compose_choices(["adapter=outside", "adapter.depth=4"])
    assert choice.config["adapter"] == {"name": "outside", "depth": 4}
    with pytest.raises(UserError, match=r"there is no setting adapter.dept; did you mean adapter.depth\?"):
        compose_choices(["adapter=outside", "adapter.dept=4"])


@pytest.mark.parametrize(
    ("entry", "package", "spec", "words"),
    [
        ("a", "no_such_package", None, "there is no package no_such_package"),
        ("b", "half", "name: b\ntitle: B", "says nothing of version, pinned, python, profiles, layouts, axes"),
        ("c", "no_yaml", "{", "cannot be read"),
        ("d", "misnamed", _spec("another"), "calls it another"),
        ("e", "sourceless", _spec("e", axes="{queue: {declared: x, values: [none], date: 2026-11-30}}"), "no source"),
        ("fake", "double", _spec("fake"), "the package adapters.fake has an adapter of that name already"),
    ],
)
def test_a_broken_one_is_told_and_the_others_stay(
    install: Install, entry: str, package: str, spec: str | None, words: str
) -> None:
    before = set(find_adapters())
    install(entry, package, spec)
    assert set(find_adapters()) == before
    assert words in look_for_adapters().broken[entry]
    if entry != "fake":
        with pytest.raises(UserError, match=f"the installed adapter {entry} cannot be used"):
            compose_choices([f"adapter={entry}"])


def test_a_driver_that_cannot_be_imported_is_one_line(install: Install) -> None:
    install("mute", "mute_package", _spec("mute"))
    with pytest.raises(UserError, match="the driver of adapter mute cannot be imported"):
        _ = find_adapter("mute").driver
