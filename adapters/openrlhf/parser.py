"""The command line of the installed OpenRLHF, which is built under `if __name__ == "__main__"` and cannot be imported.

Its source is read, and only the statements that build and check the arguments are run: no framework is imported, no Ray
started. What they leave is the nearest that OpenRLHF has to a resolved configuration.
"""

import argparse
import ast
import importlib.util
import os
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from harness.errors import SystemFailure

MODULE = "openrlhf.cli.train_ppo_ray"
NESTING = "openrlhf.utils.config"
"""Makes `args.actor.adam.lr` of `--actor.adam.lr`; standard library only, unlike the package that holds it."""


class Drift(SystemFailure):
    """The installed command line is not the one that the adapter was written for; begins with `hook drift`."""


class Refused(SystemFailure):
    """The installed command line does not take an argument, or a combination of them."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(f"{MODULE} says: {message}")


def installed_parser() -> argparse.ArgumentParser:
    """The parser, built by the statements of the installed source that come before `parse_args`.

    Raises:
        Drift: the source no longer builds one in this way.
    """
    names: dict[str, Any] = {}
    _run(_before_parsing(), names)
    if not isinstance(parser := names.get("parser"), argparse.ArgumentParser):
        raise Drift(f"hook drift: {MODULE} builds no parser of that name any more")
    return parser


def flag_drift(flags: Iterable[str]) -> list[str]:
    """One message for each flag that the installed version no longer has; `flags` are without their two dashes."""
    try:
        known = {word for action in installed_parser()._actions for word in action.option_strings}
    except Drift as error:
        return [str(error)]
    return [f"hook drift: {MODULE} has no flag --{flag} any more" for flag in flags if f"--{flag}" not in known]


def check_flags(flags: Iterable[str]) -> None:
    """Raise Drift, naming each flag that the installed version no longer has."""
    if messages := flag_drift(flags):
        raise Drift("; ".join(messages))


def resolve(words: Sequence[str]) -> SimpleNamespace:
    """The arguments as `train` would be given them: defaults filled in, OpenRLHF's own checks passed.

    Raises:
        Refused: it does not take them, with its own words.
        Drift: the source no longer works in this way.
    """
    _before_parsing()
    given: list[Any] = []
    names: dict[str, Any] = {"train": given.append}
    with _argv(words), _nesting():
        try:
            _run(_main_block(), names)
        except AssertionError as error:
            raise Refused(f"{MODULE} says: {error}") from error
    if len(given) != 1:
        raise Drift(f"hook drift: {MODULE} no longer hands its arguments to train()")
    arguments: SimpleNamespace = given[0]
    return arguments


def _source() -> tuple[Path, ast.Module]:
    try:
        spec = importlib.util.find_spec(MODULE)
    except ImportError as error:
        raise Drift(f"hook drift: {MODULE} cannot be found: {error}") from error
    if spec is None or spec.origin is None:
        raise Drift(f"hook drift: there is no module {MODULE}")
    path = Path(spec.origin)
    return path, ast.parse(path.read_text(encoding="utf-8"))


def _main_block() -> list[ast.stmt]:
    for node in _source()[1].body:
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            return node.body
    raise Drift(f'hook drift: {MODULE} has no `if __name__ == "__main__"` any more')


def _before_parsing() -> list[ast.stmt]:
    block = _main_block()
    for index, node in enumerate(block):
        if "parse_args(" in ast.unparse(node):
            return block[:index]
    raise Drift(f"hook drift: {MODULE} no longer parses arguments in its main block")


def _run(statements: list[ast.stmt], names: dict[str, Any]) -> None:
    """Run statements of the installed source with a parser that raises where the real one would end the process."""
    standing_in = types.ModuleType("argparse")
    standing_in.__dict__.update(vars(argparse) | {"ArgumentParser": _Parser})
    names |= {"argparse": standing_in, "datetime": datetime, "os": os}
    code = compile(ast.Module(body=statements, type_ignores=[]), MODULE, "exec")
    try:
        exec(code, names)  # noqa: S102  (OpenRLHF's own lines, which its own launch would run)
    except (NameError, ImportError) as error:
        raise Drift(f"hook drift: the main block of {MODULE} needs more than it did: {error}") from error


@contextmanager
def _argv(words: Sequence[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = [MODULE, *words]
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def _nesting() -> Iterator[None]:
    """Let the main block import its one helper without that helper's package, which loads a GPU's libraries."""
    if NESTING in sys.modules:
        yield
        return
    path = _source()[0].parents[1] / "utils" / "config.py"
    spec = importlib.util.spec_from_file_location(NESTING, path)
    if spec is None or spec.loader is None or not path.exists():
        raise Drift(f"hook drift: there is no module {NESTING}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NESTING] = module
    try:
        yield
    finally:
        del sys.modules[NESTING]
