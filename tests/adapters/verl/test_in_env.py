"""Runs the checks of `in_env/` inside verl's own environment."""

from pathlib import Path

import pytest

from tests.in_env import interpreter, run_checks

CHECKS = sorted((Path(__file__).parent / "in_env").glob("check_*.py"))


@pytest.mark.parametrize("file", CHECKS, ids=lambda path: path.stem)
def test_in_verls_environment(file: Path, tmp_path: Path) -> None:
    run_checks(interpreter("verl", "cpu"), file, tmp_path)
