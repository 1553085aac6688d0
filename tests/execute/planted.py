"""A repository that holds what a cell of the fake adapter imports, with a commit for each thing to be told."""

import shutil
import subprocess
from pathlib import Path

from harness.execute.checkouts import IMPORTED, ROOMS

ROOT = Path(__file__).resolve().parents[2]
TRUTH = "adapters/fake/truth.py"
PLAIN = "SLOWED: dict[str, float] = {}"
PLANTED = {
    "slow": (TRUTH, PLAIN, 'SLOWED: dict[str, float] = {"decode": 1.05}'),
    "comment": (TRUTH, PLAIN, f"# What a commit plants.\n\n{PLAIN}"),
    "page": ("docs/page.md", "old", "new"),
    "drifted": ("adapters/fake/hooks.py", "return []", 'return ["hook drift: fake.loop:step (decode) is gone"]'),
    "crashes": ("adapters/fake/loop.py", "    def run(self) -> None:\n", "    def run(self) -> None:\n        1 / 0\n"),
    "gone": ("adapters/fake/adapter.yaml", "", ""),
}
"""By tag: a file, and what is replaced in it. The tag `base` is what they stand on."""


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@invalid")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def planted_repository(folder: Path) -> Path:
    """Make it."""
    for name in (*IMPORTED, *(f"harness/{room}" for room in ROOMS), "adapters/fake"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    (folder / "docs").mkdir()
    (folder / "docs" / "page.md").write_text("old\n", encoding="utf-8")
    _git(folder, "init", "--quiet")
    _git(folder, "add", "-A")
    _git(folder, "commit", "--quiet", "-m", "base")
    _git(folder, "tag", "base")
    for tag, (name, old, new) in PLANTED.items():
        _git(folder, "checkout", "--quiet", "base")
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} no longer has: {old}"
        if old:
            path.write_text(text.replace(old, new), encoding="utf-8")
        else:
            _git(folder, "rm", "-r", "--quiet", str(path.parent))
        _git(folder, "commit", "--quiet", "-am", tag)
        _git(folder, "tag", tag)
    return folder
