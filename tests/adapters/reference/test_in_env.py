"""Runs the checks of `in_env/` inside the reference loop's environments."""

from pathlib import Path

import pytest

from tests.in_env import interpreter, run_checks

CHECKS = sorted((Path(__file__).parent / "in_env").glob("check_*.py"))


@pytest.mark.parametrize("file", [path for path in CHECKS if "vllm" not in path.name], ids=lambda path: path.stem)
def test_with_the_embedded_engine(file: Path, tmp_path: Path) -> None:
    run_checks(interpreter("reference", "cpu"), file, tmp_path)


@pytest.mark.parametrize("file", [path for path in CHECKS if "vllm" in path.name], ids=lambda path: path.stem)
def test_with_vllm(file: Path, tmp_path: Path) -> None:
    run_checks(interpreter("reference", "cpu_vllm"), file, tmp_path)
