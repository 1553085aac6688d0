import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from adapters.verl.imports import after_import


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "freshly_made.py").write_text("value = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "freshly_made", raising=False)
    return "freshly_made"


def _double(module: ModuleType) -> None:
    module.value *= 2  # type: ignore[attr-defined]


def test_it_acts_once_the_module_is_imported(module: str) -> None:
    before = list(sys.meta_path)
    after_import(module, _double)
    assert importlib.import_module(module).value == 2  # type: ignore[attr-defined]
    assert sys.meta_path == before


def test_it_acts_at_once_where_the_module_is_there(module: str) -> None:
    found = importlib.import_module(module)
    after_import(module, _double)
    assert found.value == 2  # type: ignore[attr-defined]


def test_two_actions_both_act(module: str) -> None:
    after_import(module, _double)
    after_import(module, _double)
    assert importlib.import_module(module).value == 4  # type: ignore[attr-defined]
