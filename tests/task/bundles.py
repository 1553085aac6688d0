"""Bundles written by hand, without a model, and a stand-in for reasoning-gym whose scoring does whatever it is told."""

import dataclasses
import json
import struct
from pathlib import Path
from typing import Any

from harness.task.hashing import checkpoint_hash, sha256_file, sha256_text
from harness.task.kinds import kind_of
from harness.task.makers.job import seal
from harness.task.problem import Canary, Problem

ARITHMETIC: dict[str, Any] = {"name": "arithmetic", "problems": {"count": 8, "operators": "+", "max_operand": 9}}
TWO_TURN: dict[str, Any] = {"name": "arithmetic_two_turn", "problems": {"count": 8}}
GYM: dict[str, Any] = {"name": "reasoning_gym", "problems": {"dataset": "obedient", "count": 3}}
GYM_VERSION = "reasoning-gym-9.9/obedient"

OBEDIENT_GYM = """
import os, re, time

class Dataset:
    def score_answer(self, answer, entry):
        if answer == "hang":
            while True: time.sleep(0.01)
        if answer == "hang in C":
            re.match("(a+)+$", "a" * 64 + "b")
        if answer == "die": os._exit(9)
        if answer == "raise": raise ValueError("no such thing")
        if answer == "nan": return float("nan")
        if answer == "print": print("[1, 0.0, {}, 0, 0]", flush=True)
        return 1.0 if answer in (entry["answer"], "print") else 0.0

DATASETS = {"obedient": (Dataset, None)}
get_score_answer_fn = lambda name: Dataset().score_answer
"""


def safetensors(path: Path, tensors: dict[str, bytes], order: list[str], note: str = "") -> None:
    """A safetensors file with one byte tensor a name, laid out in `order`."""
    header: dict[str, Any] = {"__metadata__": {"note": note}}
    at = 0
    for name in order:
        header[name] = {"dtype": "U8", "shape": [len(tensors[name])], "data_offsets": [at, at + len(tensors[name])]}
        at += len(tensors[name])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors[name] for name in order))


def write_bundle(folder: Path, task: dict[str, Any] = ARITHMETIC, **facts: Any) -> Path:
    """A whole bundle; `facts` replace those of bundle.json."""
    (folder / "model").mkdir(parents=True)
    problems, canary, version = _problems(task)
    rows = [{**dataclasses.asdict(p), "text": p.messages[0]["content"], "token_ids": [1, 2]} for p in problems]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "model" / "config.json").write_text("{}")
    (folder / "model" / "tokenizer.json").write_text("{}")
    safetensors(folder / "model" / "model.safetensors", {"a": b"123", "b": b"45"}, ["a", "b"])
    hashes = {
        "tokenizer_hash": sha256_file(folder / "model" / "tokenizer.json"),
        "template_hash": sha256_text(""),
        "checkpoint_hash": checkpoint_hash(folder / "model" / "model.safetensors"),
        "verifier_version": version,
    }
    seal(folder, {"task": task, "model": {}, "meta": {}, "canary": dataclasses.asdict(canary), **hashes, **facts})
    return folder


def _problems(task: dict[str, Any]) -> tuple[list[Problem], Canary, str]:
    if task["name"] != "reasoning_gym":
        kind = kind_of(task["name"])
        problems = kind.problems(task["problems"], "prompts", task["problems"]["count"])
        return problems, kind.canary(task["problems"], problems), kind.version(task["problems"])
    entry = {"dict": [["answer", "yes"]]}
    problems = [Problem(f"p{i}", [{"role": "user", "content": "?"}], "yes", {"entry": entry}) for i in range(3)]
    return problems, Canary("p0", "yes", "no", 0.0), GYM_VERSION


def write_obedient_gym(folder: Path) -> Path:
    """A package `reasoning_gym` 9.9 in `folder`, which goes on PYTHONPATH."""
    (folder / "reasoning_gym").mkdir(parents=True)
    (folder / "reasoning_gym" / "__init__.py").write_text("")
    (folder / "reasoning_gym" / "factory.py").write_text(OBEDIENT_GYM)
    facts = folder / "reasoning_gym-9.9.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: reasoning-gym\nVersion: 9.9\n")
    return folder
