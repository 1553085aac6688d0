"""The reader of the installed command line, on a small one of the same make; the real one is read in `in_env/`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.openrlhf.parser import Drift, Refused, check_flags, flag_drift, installed_parser, resolve

SOURCE = """
import argparse
from datetime import datetime

import no_such_framework

def train(args):
    raise SystemExit("the real train() was called")

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for prefix in ("actor", "critic"):
        parser.add_argument(f"--{prefix}.adam.lr", type=float, default=1e-6)
    parser.add_argument("--data.max_len", type=int, default=2048)
    parser.add_argument("--name", default="ppo_%s" % datetime.now().strftime("%m"))
    args = parser.parse_args()
    from openrlhf.utils.config import hierarchize

    args = hierarchize(args)
    assert args.data.max_len > 0, "max_len has to be positive"
    train(args)
"""
CONFIG = """
from types import SimpleNamespace

def hierarchize(args):
    actor = SimpleNamespace(adam=SimpleNamespace(lr=vars(args)["actor.adam.lr"]))
    return SimpleNamespace(actor=actor, data=SimpleNamespace(max_len=vars(args)["data.max_len"]))
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for package in ("openrlhf", "openrlhf/cli", "openrlhf/utils"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise ImportError" if package.endswith("utils") else "")
    (tmp_path / "openrlhf" / "utils" / "config.py").write_text(CONFIG)
    install(tmp_path, SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "openrlhf"]:
        del sys.modules[name]


def install(folder: Path, source: str) -> None:
    (folder / "openrlhf" / "cli" / "train_ppo_ray.py").write_text(source)


def test_its_parser_is_built_without_its_imports() -> None:
    assert installed_parser().parse_args([]).__dict__["critic.adam.lr"] == 1e-6


def test_a_flag_that_is_gone_is_named() -> None:
    assert flag_drift(["actor.adam.lr", "data.max_len"]) == []
    (message,) = flag_drift(["actor.adam.lr", "actor.adam.betas"])
    assert message == "hook drift: openrlhf.cli.train_ppo_ray has no flag --actor.adam.betas any more"
    check_flags(["actor.adam.lr"])
    with pytest.raises(Drift, match="no flag --actor"):
        check_flags(["actor.adam.betas"])


def test_a_flag_that_only_begins_like_one_is_not_that_one() -> None:
    assert len(flag_drift(["data.max"])) == 1


def test_arguments_are_resolved_as_train_would_get_them() -> None:
    before = sys.argv
    found = resolve(["--actor.adam.lr", "0.5"])
    assert (found.actor.adam.lr, found.data.max_len) == (0.5, 2048)
    assert sys.argv is before
    assert "openrlhf.utils.config" not in sys.modules


@pytest.mark.parametrize(
    ("words", "said"), [(["--no.such", "1"], "unrecognized"), (["--data.max_len", "0"], "max_len has to be positive")]
)
def test_what_it_does_not_take_is_said_in_its_words(words: list[str], said: str) -> None:
    with pytest.raises(Refused, match=said):
        resolve(words)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('if __name__ == "__main__":', "if True:"),
        ("args = parser.parse_args()", "args = None"),
        ("argparse.ArgumentParser()", "None or make_parser()"),
    ],
)
def test_another_make_of_source_is_drift(installed: Path, old: str, new: str) -> None:
    install(installed, SOURCE.replace(old, new))
    (message,) = flag_drift(["data.max_len"])
    assert message.startswith("hook drift:")
    with pytest.raises(Drift):
        resolve([])


def test_a_main_block_that_no_longer_trains_is_drift(installed: Path) -> None:
    install(installed, SOURCE.replace("    train(args)\n", ""))
    with pytest.raises(Drift, match="no longer hands its arguments"):
        resolve([])
