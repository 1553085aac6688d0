"""A bundle that was changed, cut short or lost a file is refused by name."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.task import bundle as bundle_module
from harness.task.bundle import Bundle
from harness.task.hashing import checkpoint_hash
from tests.task.bundles import safetensors, write_bundle


def test_a_whole_bundle_loads(tmp_path: Path) -> None:
    bundle = Bundle.load(write_bundle(tmp_path / "b"), verify=True)
    assert [prompt.prompt_id for prompt in bundle.prompts] == [f"arithmetic-{i:05d}" for i in range(8)]
    assert bundle.prompts[0].text == bundle.prompts[0].messages[0]["content"]
    assert bundle.model_dir == tmp_path / "b" / "model"
    assert bundle.verifier_version == "arithmetic-1"


def test_equal_content_has_an_equal_hash_wherever_it_lies(tmp_path: Path) -> None:
    first, second = write_bundle(tmp_path / "a"), write_bundle(tmp_path / "b")
    assert Bundle.load(first).hash == Bundle.load(second).hash


def _edit(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            _edit("prompts.jsonl", lambda data: data.replace(b'"role"', b'"rule"')),
            "prompts.jsonl does not match its hash",
        ),
        (_edit("prompts.jsonl", lambda data: data[:-1]), "prompts.jsonl has"),
        (_edit("model/model.safetensors", lambda data: data[:-1] + b"!"), "model.safetensors does not match its hash"),
        (lambda folder: (folder / "model" / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda folder: (folder / "bundle.json").unlink(), "no bundle at"),
        (_edit("bundle.json", lambda data: data[:40]), "bundle.json cannot be read"),
        (_edit("bundle.json", lambda _: b"[]"), "bundle.json cannot be read"),
        (_edit("bundle.json", lambda data: data.replace(b'"schema": 1', b'"schema": 9')), "has schema 9"),
        (_edit("bundle.json", lambda data: re.sub(rb'"hash": "...', b'"hash": "xyz', data)), "bundle.json was changed"),
    ],
)
def test_damage_is_named(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    folder = write_bundle(tmp_path / "b")
    damage(folder)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        Bundle.load(folder)
    assert str(folder) in str(caught.value)


def test_a_large_file_is_hashed_on_request_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_bundle(tmp_path / "b")
    _edit("model/model.safetensors", lambda data: data[:-1] + b"!")(folder)
    monkeypatch.setattr(bundle_module, "SMALL_FILE_BYTES", 0)
    Bundle.load(folder)
    with pytest.raises(UserError, match="does not match"):
        Bundle.load(folder, verify=True)


def test_a_checkpoint_hashes_by_its_tensors_not_its_layout(tmp_path: Path) -> None:
    tensors = {"a": b"123", "b": b"45"}
    safetensors(tmp_path / "1", tensors, ["a", "b"])
    safetensors(tmp_path / "2", tensors, ["b", "a"], note="written by another version")
    safetensors(tmp_path / "3", tensors | {"b": b"46"}, ["a", "b"])
    first, second, third = (checkpoint_hash(tmp_path / name) for name in "123")
    assert first == second != third


def test_prompts_are_what_the_file_says(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "b")
    rows = [json.loads(line) for line in (folder / "prompts.jsonl").read_text().splitlines()]
    assert [prompt.answer for prompt in Bundle.load(folder).prompts] == [row["answer"] for row in rows]
