"""Asks an adapter, inside its environment, whether every place that it holds on to still exists there."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from harness.errors import SystemFailure
from harness.execute.adapter import Adapter, import_folder
from harness.execute.environments import cache_folder

HOOK_SECONDS = 300


def hook_drift(adapter: Adapter, python: Path, source: Path | None = None) -> list[str]:
    """One message for each hook point that the installed version no longer has; empty where all hold.

    Args:
        python: the interpreter of the environment.
        source: the folder that the adapter is imported from; None for this checkout.

    Raises:
        SystemFailure: the check itself failed.
    """
    imports = import_folder(adapter, cache_folder() / "doctor" / str(os.getpid()), source)
    try:
        done = subprocess.run(
            [str(python), "-m", f"{adapter.package}.inside", "--check-hooks"],
            cwd=imports,  # `-m` puts the working folder first
            env=os.environ | {"PYTHONPATH": str(imports)},
            capture_output=True,
            text=True,
            check=False,
            timeout=HOOK_SECONDS,
        )
        return list(json.loads((done.stdout.strip().splitlines() or [""])[-1]))
    except subprocess.TimeoutExpired as error:
        raise SystemFailure(f"the check itself failed: {error}") from error
    except (ValueError, TypeError) as error:
        said = (done.stderr.strip() or f"it ended with {done.returncode} and said nothing").splitlines()[-1]
        raise SystemFailure(f"the check itself failed: {said}") from error
    finally:
        shutil.rmtree(imports)
