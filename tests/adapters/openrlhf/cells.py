"""Cells of the OpenRLHF adapter for tests, as `cell.json` holds them."""

from pathlib import Path
from typing import Any

import yaml

from adapters.openrlhf.flags import Files
from conf import __file__ as conf_file
from tests.adapters.trl.cells import TASK

CONF = Path(conf_file).parent
OPTIONS: dict[str, Any] = yaml.safe_load((CONF / "adapter" / "openrlhf.yaml").read_text(encoding="utf-8"))
PROFILES: dict[str, dict[str, Any]] = {
    "cpu": {"name": "cpu", "device": "cpu", "devices": 1, "threads": 1},
    "one_gpu": {"name": "one_gpu", "device": "cuda", "devices": 1, "threads": 8},
    "multi_gpu": {"name": "multi_gpu", "device": "cuda", "devices": 8, "threads": 8},
}
FILES = Files(Path("/bundle/model"), Path("/cell/prompts.jsonl"), 12, 5, Path("/adapter/agent.py"))


def layout_of(name: str, **changed: Any) -> dict[str, Any]:
    """A layout as the configuration has it."""
    content = yaml.safe_load((CONF / "layout" / f"{name}.yaml").read_text(encoding="utf-8"))
    return dict(content) | changed


def cell_of(
    directory: Path = Path("/runs/cell"),
    bundle: Path = Path("bundle"),
    *,
    layout: str = "disaggregated_sync",
    lag_bound: int | None = None,
    track: str = "free",
    profile: str = "cpu",
    attempt: int = 0,
    options: dict[str, Any] | None = None,
    **task: Any,
) -> dict[str, Any]:
    """A cell in `directory`; keyword arguments that are no field of a cell change its task."""
    unknown = set(task) - set(TASK)
    assert not unknown, f"no task setting {unknown}"
    return {
        "run_id": "test/openrlhf",
        "cell_id": "openrlhf",
        "adapter": "openrlhf",
        "package": "adapters.openrlhf",
        "layout": layout_of(layout, **({} if lag_bound is None else {"lag_bound": lag_bound})),
        "track": track,
        "repeat": 0,
        "seed": 17,
        "observer": True,
        "bundle": str(bundle),
        "directory": str(directory),
        "attempt": attempt,
        "fault": {"name": "none"},
        "profile": PROFILES[profile],
        "model": {"name": "tiny"},
        "adapter_options": OPTIONS | (options or {}),
        "task": TASK | task,
    }
