"""Import hooks: a function of ours is given a framework's module right after that module was executed, in whatever
process imports it. Loaded at the start of every Python process of a cell, Ray's own daemons among them, which have 15
seconds to start: it imports the standard library only, and no package of ours."""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

VARIABLE = "RLAXES_OPENRLHF_PATCHES"
"""Says which patches are in force in every process of a cell: JSON, our functions (`module:function`) by the module
that they are given."""


class _Patched(Loader):
    """A module's own loader, and after it our functions."""

    def __init__(self, loader: Any, functions: Sequence[str]) -> None:
        self._loader, self._functions = loader, functions

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, then hand it to each function."""
        self._loader.exec_module(module)
        for name in self._functions:
            place, _, function = name.partition(":")
            getattr(importlib.import_module(place), function)(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder(MetaPathFinder):
    """Finds the modules that patches wait for, by the finders that stand behind it."""

    def __init__(self, functions: Mapping[str, Sequence[str]]) -> None:
        self._functions = functions
        self._busy: set[str] = set()

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's own spec with a patched loader; None for every other module."""
        del path, target
        if fullname not in self._functions or fullname in self._busy:
            return None
        self._busy.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patched(spec.loader, self._functions[fullname])
        return spec


def in_force(patches: Iterable[Any]) -> str:
    """The value of `VARIABLE` that puts these patches (`adapters.openrlhf.patch`) into force."""
    functions: dict[str, list[str]] = {}
    for patch in patches:
        functions.setdefault(patch.module, []).append(patch.function)
    return json.dumps(functions)


def install() -> None:
    """Put the patches that `VARIABLE` names into force in this process; once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(json.loads(os.environ.get(VARIABLE, "{}"))))
