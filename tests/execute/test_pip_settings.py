import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execute import pip_settings
from harness.execute.pip_settings import (
    SECTIONS,
    find_links_wheels,
    parse_config,
    uv_command,
    uv_environment,
    uv_options,
    uv_variables,
)

KEYS = st.sampled_from(["index-url", "find-links", "cert", "timeout", "x-y"])
ENTRIES = st.dictionaries(st.tuples(st.sampled_from([*SECTIONS, "freeze"]), KEYS), st.text(), max_size=12)


@given(ENTRIES, st.randoms())
def test_the_nearest_section_wins_whatever_the_order(entries: dict[tuple[str, str], str], random: object) -> None:
    lines = [f"{section}.{key}={value!r}" for (section, key), value in entries.items()]
    random.shuffle(lines)  # type: ignore[attr-defined]
    expected = {}
    for section in SECTIONS:
        expected |= {key: value for (where, key), value in entries.items() if where == section}
    assert parse_config("\n".join(lines)) == expected


def test_each_setting_has_its_word_in_uv() -> None:
    settings = {
        "find-links": "/a/b https://host.invalid/x\nfile:///c%20d",
        "index-url": "https://one.invalid/simple",
        "extra-index-url": "file:///e/simple\nfile:///f/simple",
        "constraint": "/k.txt",
        "cert": "/ca.pem",
        "client-cert": "/me.pem",
        "proxy": "http://proxy.invalid:1",
        "trusted-host": "a b",
        "default-timeout": "180",
        "no-color": "true",
        "timeout": "",
    }
    assert uv_variables(settings) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/a/b,https://host.invalid/x,file:///c%20d",
        "UV_DEFAULT_INDEX": "https://one.invalid/simple",
        "UV_EXTRA_INDEX_URL": "file:///e/simple file:///f/simple",
        "UV_CONSTRAINT": "/k.txt",
        "SSL_CERT_FILE": "/ca.pem",
        "SSL_CLIENT_CERT": "/me.pem",
        "ALL_PROXY": "http://proxy.invalid:1",
        "UV_INSECURE_HOST": "a b",
        "UV_HTTP_TIMEOUT": "180",
    }


def test_a_relative_folder_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert uv_variables({"find-links": "wheels"})["UV_FIND_LINKS"] == str(tmp_path / "wheels")


@pytest.mark.parametrize(("value", "options"), [("true", ["--no-index"]), ("1", ["--no-index"]), ("false", [])])
def test_no_index_is_an_option(value: str, options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert uv_options({"no-index": value}) == options
    monkeypatch.setattr(pip_settings, "pip_settings", lambda: {"no-index": value})
    assert uv_command("uv", ["pip", "sync", "x"]) == ["uv", "pip", "sync", *options, "x"]
    assert uv_command("uv", ["venv", "x"]) == ["uv", "venv", "x"]


def test_what_was_said_to_uv_itself_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip_settings, "pip_settings", lambda: {"find-links": "/pip", "constraint": "/k.txt"})
    monkeypatch.setenv("UV_FIND_LINKS", "/own")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    monkeypatch.delenv("UV_CONSTRAINT", raising=False)
    assert uv_environment()["UV_FIND_LINKS"] == "/own"
    assert uv_environment()["UV_CONSTRAINT"] == "/k.txt"
    assert "UV_CONSTRAINT" not in uv_environment(locked=True)
    assert "VIRTUAL_ENV" not in uv_environment()


def test_wheels_are_found_in_folders_and_file_urls(tmp_path: Path) -> None:
    for folder in (tmp_path / "plain", tmp_path / "with space"):
        folder.mkdir()
        (folder / "torch-1.whl").touch()
    words = f"{tmp_path}/plain,{(tmp_path / 'with space').as_uri()},https://host.invalid/torch-1.whl,{tmp_path}/none"
    assert [wheel.parent.name for wheel in find_links_wheels({"UV_FIND_LINKS": words}, "torch-*.whl")] == [
        "plain",
        "with space",
    ]


def test_as_a_plain_file_it_becomes_the_command_with_the_settings(tmp_path: Path) -> None:
    """As the Makefile runs it: by an interpreter that can import nothing of rlaxes."""
    (tmp_path / "pip.conf").write_text("[global]\nfind-links = /from/pip\nno-index = true\n", encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "PYTHONPATH"))}
    command = [sys.executable, pip_settings.__file__, "/bin/sh", "-c", "echo $UV_FIND_LINKS"]
    done = subprocess.run(
        command, env=env | {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "/from/pip\n", done.stderr
