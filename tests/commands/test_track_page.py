"""docs/track.md: its pipelines are YAML, and do with each exit code what the page says."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.compare.effect import Effect, detectable
from harness.compare.gates import LEVEL, STATED_MARGIN, weights_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "track.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
GITHUB, GITLAB = map(yaml.safe_load, BLOCKS)
ROWS = re.findall(r"^\| ([\d.]+) % \| (.* %) \|$", PAGE, re.MULTILINE)
PARTS = tuple(f"t_seq_part_seconds[{term}]" for term in ("rollout", "reward", "train", "sync"))


def _steps() -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in GITHUB["jobs"]["track"]["steps"] if "name" in step}


@pytest.mark.parametrize(
    ("code", "ends", "says"),
    [(0, 0, None), (1, 1, "::error title=slower"), (2, 0, "::warning"), (3, 3, "::error title=not"), (4, 4, "::error")],
)
def test_github_ends_as_the_page_says(tmp_path: Path, code: int, ends: int, says: str | None) -> None:
    command = tmp_path / ".venv" / "bin" / "rlaxes"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\necho "$@"\nexit {code}\n', encoding="utf-8")
    command.chmod(0o755)
    env = {"PATH": "/usr/bin:/bin", "PIN": "1.0", "CANDIDATE": "git:main", "GITHUB_STEP_SUMMARY": "summary.md"}
    script = ["bash", "-e", "-c", _steps()["track"]["run"]]
    done = subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == ends
    assert "track adapter=trl --pin 1.0 --candidate git:main" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert says in done.stdout if says else "::" not in done.stdout


def test_gitlab_takes_only_what_cannot_be_told_for_a_warning() -> None:
    assert GITLAB["track"]["allow_failure"] == {"exit_codes": [2]}
    assert GITLAB["track"]["artifacts"]["when"] == "always"


def test_the_table_of_pairs_is_that_of_the_rule() -> None:
    weights = weights_of(["step_seconds", *PARTS, "memory_peak_bytes"])
    shares = [LEVEL * weights[name] / sum(weights.values()) for name in ("step_seconds", PARTS[0])]
    assert len(ROWS) == 5
    for noise, cells in ROWS:
        for pairs, cell in zip((3, 5, 8, 10, 15, 20), cells.split(" | "), strict=True):
            effect = Effect(0.0, float(noise) / 100 * (2 / pairs) ** 0.5, pairs - 1, pairs, paired=True)
            found = [100 * detectable(effect, share, STATED_MARGIN) for share in shares]
            shown = [float(part) for part in cell.removesuffix(" %").split(" / ")]
            assert shown == pytest.approx(found, abs=0.051, rel=0.005)
