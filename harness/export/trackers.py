"""MLflow, W&B and trackio: each tool's own library writes, in an environment of its own that only an export needs.

The harness renders the neutral form as JSON; `tools/to_<tool>.py`, which imports nothing of rlaxes, writes it.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from harness.errors import PrerequisiteError, UserError
from harness.execute.environments import Environment, ensure_environment
from harness.execute.locks import EXPORT, EXPORT_LOCK, EXPORT_PYTHON
from harness.execute.uv_process import Say
from harness.export.content import Content

TRACKERS = ("mlflow", "trackio", "wandb")
TOOLS = Path(__file__).parent / "tools"
LONGEST_SECONDS = 1800
THERE_ALREADY = 5
"""What a script of `tools/` ends with where the run is in its store already."""
QUIET = {
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_DISABLE_AGENT_HINT": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "WANDB_MODE": "offline",
    "WANDB_ERROR_REPORTING": "false",
    "WANDB_SILENT": "true",
    "WANDB_CONSOLE": "off",
    "WANDB_DISABLE_GIT": "true",
    "WANDB_DISABLE_CODE": "true",
}
"""What keeps the tools from calling anybody, and from noting what belongs to this machine."""


def export_environment(say: Say) -> Environment:
    """The environment of the tools, made now if it is not there.

    Raises:
        PrerequisiteError: it cannot be made.
    """
    return ensure_environment(EXPORT, EXPORT_LOCK, EXPORT_PYTHON, say)


def write_tracker(tool: str, content: Content, folder: Path, python: Path) -> None:
    """Let a tool's library write a run into its store in `folder`, beside what is there.

    Raises:
        UserError: that run is in the store already.
        PrerequisiteError: the tool failed; the message ends with its last word.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rlaxes-export-") as name:
        path = Path(name) / "content.json"
        path.write_text(json.dumps(content.as_dict(), allow_nan=False), encoding="utf-8")
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", "WANDB_", "TRACKIO_"))
        }
        # Each tool keeps settings and caches in the home folder: not of the user, of this export.
        home = {"HOME": name, "XDG_CACHE_HOME": name, "XDG_CONFIG_HOME": name, "HF_HOME": name}
        done = subprocess.run(
            [str(python), "-I", str(TOOLS / f"to_{tool}.py"), str(path), str(folder.absolute())],
            env=kept | home | QUIET,
            cwd=name,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_SECONDS,
        )
    if done.returncode == THERE_ALREADY:
        raise UserError(f"run {content.run_id} is in {folder} already: choose another --output, or remove it there")
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise PrerequisiteError(f"{tool} could not write the run (exit {done.returncode}): {last}")
