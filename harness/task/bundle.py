"""A bundle: prompts, tokenizer, starting checkpoint and task, hashed, in one folder. Standard library only.

bundle.json names every other file with its size and SHA-256; `hash` covers them all, so equal hashes mean equal work.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.task.hashing import sha256_file, sha256_text
from harness.task.problem import Problem

SCHEMA = 1
# Files up to this size are hashed at every load; larger ones (checkpoints) are measured, and hashed on request.
SMALL_FILE_BYTES = 16 << 20


@dataclass(frozen=True)
class Prompt(Problem):
    """A problem as the model sees it: the chat template's `text` and its `token_ids`, generation prompt included."""

    text: str
    token_ids: list[int]

    @property
    def observations(self) -> list[str]:
        """What the environment says after each turn but the last; empty where there is one turn."""
        texts: list[str] = self.meta.get("observations", [])
        return texts

    @property
    def observation_ids(self) -> list[list[int]]:
        """Token ids of `observations`."""
        ids: list[list[int]] = self.meta.get("observation_ids", [])
        return ids


def files_hash(files: dict[str, str]) -> str:
    """One hash over the files' own: SHA-256 of `path:sha256` lines in the order of the paths."""
    return sha256_text("".join(f"{name}:{files[name]}\n" for name in sorted(files)))


@dataclass(frozen=True)
class Bundle:
    """A loaded bundle. `facts` is bundle.json as it stands."""

    path: Path
    facts: dict[str, Any]

    @classmethod
    def load(cls, path: Path | str, verify: bool = False) -> "Bundle":
        """Read and check a bundle; with `verify` large files are hashed too (about 1 s a GB).

        Raises UserError naming the file that is missing, cut short or changed.
        """
        folder = Path(path).absolute()
        bundle = cls(folder, _read_facts(folder))
        for name, expected in bundle.facts["files"].items():
            _check_file(folder / name, bundle.facts["sizes"][name], expected, verify)
        if files_hash(bundle.facts["files"]) != bundle.hash:
            raise UserError(f"{folder / 'bundle.json'} was changed: its hash does not cover its list of files; {_mend}")
        return bundle

    @cached_property
    def prompts(self) -> list[Prompt]:
        """All prompts, in file order."""
        lines = (self.path / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
        return [Prompt(**json.loads(line)) for line in lines]

    @property
    def model_dir(self) -> Path:
        """Folder with config.json, model.safetensors and the tokenizer's files."""
        return self.path / "model"

    @property
    def hash(self) -> str:
        """Equal for equal prompts, tokenizer, checkpoint and task."""
        return str(self.facts["hash"])

    @property
    def tokenizer_hash(self) -> str:
        """SHA-256 of tokenizer.json."""
        return str(self.facts["tokenizer_hash"])

    @property
    def template_hash(self) -> str:
        """SHA-256 of the chat template's text."""
        return str(self.facts["template_hash"])

    @property
    def checkpoint_hash(self) -> str:
        """SHA-256 over the tensors' bytes, see `harness.task.hashing.checkpoint_hash`."""
        return str(self.facts["checkpoint_hash"])

    @property
    def verifier_version(self) -> str:
        """The scoring rule that the bundle was built with."""
        return str(self.facts["verifier_version"])

    @property
    def task(self) -> dict[str, Any]:
        """`name` and `problems` of the task's config."""
        return dict(self.facts["task"])


_mend = "delete that folder, it is built again"


def _read_facts(folder: Path) -> dict[str, Any]:
    file = folder / "bundle.json"
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        schema = facts["schema"]
    except FileNotFoundError:
        raise UserError(f"no bundle at {folder}: bundle.json is missing") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} cannot be read ({error}); {_mend}") from error
    if schema != SCHEMA:
        raise UserError(f"{file} has schema {schema}, this rlaxes reads {SCHEMA}; {_mend}")
    return facts


def _check_file(file: Path, size: int, expected: str, verify: bool) -> None:
    if not file.is_file():
        raise UserError(f"{file} is missing from its bundle; {_mend}")
    found = file.stat().st_size
    if found != size:
        raise UserError(f"{file} has {found} bytes and should have {size}; {_mend}")
    if (verify or size <= SMALL_FILE_BYTES) and sha256_file(file) != expected:
        raise UserError(f"{file} does not match its hash in bundle.json; {_mend}")
