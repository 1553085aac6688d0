"""What a launcher carries to where it runs: a call by its name, and its arguments as data."""

import json
import pkgutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from harness.contract.seal import write_json
from harness.errors import RlaxesError


@dataclass(frozen=True)
class Job:
    """A call for another process, maybe on another machine.

    Attributes:
        name: what its file and its lines on the screen are called.
        call: `module:function`; what it returns has to be data, as its arguments.
        given: the arguments by name.
    """

    name: str
    call: str
    given: dict[str, Any]

    def write(self, folder: Path) -> Path:
        """Write it to a file that the other process reads."""
        path = folder / f"{self.name}.job.json"
        write_json(path, asdict(self))
        return path


def run_file(config: DictConfig) -> dict[str, Any]:
    """The task function that Hydra's launcher calls in the job; `config` is `conf/job.yaml` with its `file`.

    Returns:
        `result`, or in `error` the one line of a mistake that is not a bug, and in `kind` its class.
    """
    asked = Job(**json.loads(Path(config.file).read_text(encoding="utf-8")))
    try:
        return {"result": pkgutil.resolve_name(asked.call)(**asked.given), "error": None, "kind": None}
    except (RlaxesError, OSError) as error:
        return {"result": None, "error": str(error), "kind": type(error).__name__}
