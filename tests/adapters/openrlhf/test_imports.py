import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.openrlhf.cpu.table import FLOAT32, PATCHES
from adapters.openrlhf.imports import VARIABLE, in_force
from adapters.openrlhf.patch import Patch
from adapters.openrlhf.table import PINNED, WATCHED

ALL = (*PINNED, *WATCHED, *PATCHES, *FLOAT32)
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("patch", ALL, ids=lambda patch: patch.name)
def test_every_patch_says_what_it_changes_and_what_it_holds_on_to(patch: Patch) -> None:
    assert patch.why
    assert patch.holds
    module, _, function = patch.function.partition(":")
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    assert f"\ndef {function}(" in Path(found.origin).read_text(encoding="utf-8")


def test_no_two_patches_have_one_name() -> None:
    names = [patch.name for patch in ALL]
    assert len(set(names)) == len(names)


def test_a_module_is_handed_over_once_it_is_executed_and_stays_as_it_is_otherwise(tmp_path: Path) -> None:
    (tmp_path / "framework.py").write_text("def answer():\n    return 1\n", encoding="utf-8")
    (tmp_path / "ours.py").write_text("def change(module):\n    module.answer = lambda: 2\n", encoding="utf-8")
    code = "import framework, inspect; print(framework.answer(), 'return 1' in inspect.getsource(framework))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PYTHONPATH": f"{ROOT / 'adapters/openrlhf/startup'}:{tmp_path}:{ROOT}",
            VARIABLE: in_force([Patch("one", "framework", "ours:change", "a test", ())]),
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["2", "True"], done.stderr


def test_what_every_process_loads_at_its_start_is_light() -> None:
    """Ray's daemons have 15 seconds to start, whatever else the machine does."""
    startup = ROOT / "adapters/openrlhf/startup"
    code = "import sys; print(sorted(name for name in sys.modules if name.split('.')[0] in {'harness', 'pyarrow'}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{startup}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
