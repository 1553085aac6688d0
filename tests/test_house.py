"""The rules of the house that a script can hold: who may import whom, and how long things get."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FRAMEWORKS = {"trl", "verl", "openrlhf", "vllm", "sglang", "deepspeed", "nemo_rl", "prime_rl", "skyrl", "areal"}
HEAVY = {"torch", "transformers", "peft", "ray"}
BELOW = {
    "contract": set(),
    "probe": {"contract"},
    "theory": {"contract"},
    "audit": {"contract"},
    "task": {"contract", "probe"},
    "cluster": {"contract"},
    "execute": {"task", "cluster", "contract", "probe"},
    "ingest": {"execute", "audit", "contract"},
    "measure": {"contract", "theory"},
    "simulate": {"execute", "cluster", "theory", "contract"},
    "validate": {"simulate", "audit", "theory", "contract"},
    "compare": {"measure", "contract"},
    "report": {"compare", "measure", "audit", "theory", "contract"},
    "export": {"execute", "report", "compare", "measure", "contract"},
    "choose": {"report", "validate", "probe", "contract"},
    "commands": {
        "audit",
        "choose",
        "compare",
        "contract",
        "execute",
        "export",
        "ingest",
        "measure",
        "report",
        "simulate",
        "theory",
    },
}
"""What each room may import (DESIGN.md, "Imports run downward only"); every room may use `harness.errors`."""
BARE = {"contract", "probe"}
BARE_ALLOWED = {"pyarrow", "harness", "torch"}
MOST_LINES, MOST_FUNCTION_LINES = 400, 80


def _sources() -> list[Path]:
    return sorted(
        p for room in ("harness", "adapters", "tests", "benchmarks", "conf") for p in (ROOT / room).rglob("*.py")
    )


def _imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Every imported module, and whether the import stands at the top level of the file."""
    top = set(ast.iter_child_nodes(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node in top


def _room(path: Path) -> str | None:
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "harness" and len(parts) > 2 else None


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= MOST_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno
            assert length <= MOST_FUNCTION_LINES, f"{node.name} has {length} lines"
    room = _room(path)
    for module, at_top in _imports(tree):
        first = module.split(".")[0]
        if path.is_relative_to(ROOT / "harness"):
            assert first not in FRAMEWORKS, f"harness imports the framework {module}"
            assert not (first in HEAVY and at_top), f"harness imports {module} at the top of a file"
            assert module != "harness.cli", "nothing imports the command"
        if room and module.startswith("harness.") and module != "harness.errors":
            other = module.split(".")[1]
            assert other == room or other in BELOW[room], f"{room} imports {other}"
        if path.name == "driver.py":
            assert first not in FRAMEWORKS | HEAVY, f"a driver imports {module}"


def test_contract_and_probe_need_pyarrow_alone() -> None:
    import sys

    for room in BARE:
        for path in (ROOT / "harness" / room).glob("*.py"):
            for module, _ in _imports(ast.parse(path.read_text(encoding="utf-8"))):
                first = module.split(".")[0]
                assert first in sys.stdlib_module_names or first in BARE_ALLOWED, f"{path.name} imports {module}"
