"""A cell: one adapter in one layout on one track, run once. What a framework's process receives, as data."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

CELL_FILE = "cell.json"


@dataclass(frozen=True)
class Cell:
    """Everything that decides what one process group does; written to `cell.json` in the cell's directory.

    Attributes:
        adapter: the label in reports (the name of the `conf/adapter` file).
        package: the adapter package that drives it, e.g. `adapters.trl`.
        observer: False for the bare twin of a run, which leaves no ledger.
        bundle: the folder with prompts, tokenizer and starting checkpoint.
        directory: the folder that the cell may write into.
        attempt: 0, or how often it was started before and died.
        fault: what a drill does to it; its name is `none` where it does nothing.
    """

    run_id: str
    cell_id: str
    adapter: str
    package: str
    layout: dict[str, Any]
    track: str
    repeat: int
    seed: int
    observer: bool
    bundle: str
    directory: str
    attempt: int
    fault: dict[str, Any]
    profile: dict[str, Any]
    model: dict[str, Any]
    adapter_options: dict[str, Any]
    task: dict[str, Any]

    def write(self) -> Path:
        """Write `cell.json`; the path goes to the process in `RLAXES_CELL`."""
        path = Path(self.directory) / CELL_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1, sort_keys=True), encoding="utf-8")
        return path

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The cell that was written to `directory`."""
        return cls(**json.loads((directory / CELL_FILE).read_text(encoding="utf-8")))

    @property
    def path(self) -> Path:
        """The cell's directory."""
        return Path(self.directory)


def cell_name(adapter: str, layout: str, track: str, repeat: int) -> str:
    """The id of a cell within its run."""
    return f"{adapter}.{layout}.{track}.r{repeat}"
