"""The notebook of the module's practice does what it says: its cells assert their numbers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_env import interpreter

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "practice.ipynb"
RUNNER = Path(__file__).parent / "run_cells.py"
SECONDS = 900
"""Most that it may take where everything else runs beside it."""
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
STEPS = ("12.1.5", "12.2.1", "12.2.4", "12.3.1", "12.3.2", "12.3.4", "12.3.5", "12.4.2", "12.5.1", "12.5.3")
NUMBERS = ("1.11", "0.344", "131_072", "32 * 2**30", "910", "694")


def source(kind: str) -> str:
    return "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == kind)


def test_every_cell_runs_in_order(tmp_path: Path) -> None:
    interpreter("reference", "cpu")  # skips where `rlaxes env sync` has not made it: nothing is downloaded here
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(NOTEBOOK)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    ran = re.findall(r"^([\w-]+): [\d.]+ s$", done.stdout, re.MULTILINE)
    assert ran == [cell["id"] for cell in CELLS if cell["cell_type"] == "code"]


def test_it_says_which_steps_it_shows_and_asserts_the_worked_numbers() -> None:
    said, code = source("markdown"), source("code")
    assert not [step for step in STEPS if step not in said and step not in code]
    assert not [number for number in NUMBERS if number not in code]
    assert said.count("Expect") >= len(re.findall(r"^## ", said, re.MULTILINE)) - 1


def test_it_is_kept_without_outputs_and_with_names_of_its_cells() -> None:
    names = [cell["id"] for cell in CELLS]
    assert len(set(names)) == len(names)
    for cell in CELLS:
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | (
            {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        )
        assert not cell.get("outputs")


@pytest.mark.parametrize("word", ["wget", "pip ", "!", "%"])
def test_its_code_is_plain_python(word: str) -> None:
    assert not [line for line in source("code").splitlines() if line.startswith(word)]
