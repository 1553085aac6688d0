"""From a model, its tokenizer and a task to the files of a bundle."""

import dataclasses
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessBug, UserError
from harness.task.bundle import SCHEMA, files_hash
from harness.task.hashing import checkpoint_hash, sha256_file, sha256_text
from harness.task.kinds import kind_of
from harness.task.problem import Problem


@dataclass(frozen=True)
class Job:
    """What to make: `task` ({name, problems}) and `model` configs, the folder `out` (exists, empty), and `packages`,
    where the builder has put the package that holds the model's weights, if it needs one."""

    task: dict[str, Any]
    model: dict[str, Any]
    out: Path
    packages: Path | None = None

    @classmethod
    def read(cls, file: Path) -> "Job":
        """The job that `write` wrote."""
        values = json.loads(file.read_text(encoding="utf-8"))
        packages = Path(values["packages"]) if values["packages"] else None
        return cls(values["task"], values["model"], Path(values["out"]), packages)

    def write(self, file: Path) -> None:
        """As JSON."""
        file.write_text(json.dumps(dataclasses.asdict(self), default=str), encoding="utf-8")


@dataclass(frozen=True)
class Made:
    """`model` and `tokenizer` are transformers' own; `meta` says how they came about."""

    model: Any
    tokenizer: Any
    meta: dict[str, Any]


Maker = Callable[[Job, list[Problem]], Made]


def say(line: str) -> None:
    """One line of progress."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def make_bundle(job: Job, make: Maker) -> None:
    """Write the bundle of `job` into `job.out`."""
    kind, settings = kind_of(job.task["name"]), job.task["problems"]
    count = int(settings["count"])
    say(f"drawing {count} problems of {job.task['name']}")
    problems = kind.problems(settings, "prompts", count)
    canary = kind.canary(settings, problems)
    made = make(job, problems)
    _save_model(job.out / "model", made)
    _save_prompts(job.out, problems, made.tokenizer)
    checkpoint = job.out / "model" / "model.safetensors"
    facts = {
        "task": job.task,
        "model": job.model,
        "meta": made.meta,
        "canary": dataclasses.asdict(canary),
        "tokenizer_hash": sha256_file(job.out / "model" / "tokenizer.json"),
        "template_hash": sha256_text(made.tokenizer.chat_template),
        "checkpoint_hash": checkpoint_hash(checkpoint),
        "verifier_version": kind.version(settings),
    }
    seal(job.out, facts)


def _save_model(folder: Path, made: Made) -> None:
    say(f"writing the checkpoint ({sum(p.numel() for p in made.model.parameters()):,} parameters)")
    _neutral_generation(made.model, made.tokenizer)
    # One file whatever the size: every framework reads it, and its hash is one number.
    made.model.save_pretrained(folder, max_shard_size="1000GB")
    made.tokenizer.save_pretrained(folder)
    _portable_tokenizer(folder / "tokenizer_config.json")
    for file in folder.iterdir():
        file.chmod(0o644)
    if not (folder / "model.safetensors").is_file() or not (folder / "tokenizer.json").is_file():
        raise UserError(f"this model does not save as one model.safetensors with a tokenizer.json: {folder}")


def _portable_tokenizer(config: Path) -> None:
    """Name the tokenizer's class as every version of transformers knows it; version 5 writes a name of its own."""
    values = json.loads(config.read_text(encoding="utf-8"))
    if values.get("tokenizer_class") == "TokenizersBackend":
        values["tokenizer_class"] = "PreTrainedTokenizerFast"
    for local in ("is_local", "local_files_only", "backend"):
        values.pop(local, None)
    config.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _neutral_generation(model: Any, tokenizer: Any) -> None:
    """A generation config that samples from the model's own distribution: an engine that reads defaults from it, as
    vLLM does, or fills gaps with its own (transformers: top_k 50), would otherwise sample from another one."""
    from transformers import GenerationConfig

    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model.config.eos_token_id = tokenizer.eos_token_id
    model.config.pad_token_id = tokenizer.pad_token_id


def _save_prompts(folder: Path, problems: list[Problem], tokenizer: Any) -> None:
    """Tokenise with the saved tokenizer as frameworks load it: its class may differ from the one that was saved."""
    from transformers import AutoTokenizer

    say(f"tokenising {len(problems)} prompts")
    saved = AutoTokenizer.from_pretrained(folder / "model", local_files_only=True)
    with (folder / "prompts.jsonl").open("w", encoding="utf-8") as lines:
        for problem in problems:
            text, ids = tokenise(saved, problem)
            observed = observations(saved, problem)
            if (text, ids, observed) != (*tokenise(tokenizer, problem), observations(tokenizer, problem)):
                raise HarnessBug(f"{problem.prompt_id} is tokenised otherwise once the tokenizer was saved and loaded")
            row = {**dataclasses.asdict(problem), "text": text, "token_ids": ids}
            if observed:
                row["meta"] = {**problem.meta, "observation_ids": observed}
            lines.write(json.dumps(row) + "\n")


def tokenise(tokenizer: Any, problem: Problem) -> tuple[str, list[int]]:
    """The chat template's text and ids for one problem, generation prompt included."""
    text = tokenizer.apply_chat_template(problem.messages, tokenize=False, add_generation_prompt=True)
    encoded = tokenizer.apply_chat_template(
        problem.messages, tokenize=True, add_generation_prompt=True, return_dict=True
    )
    ids = [int(token) for token in encoded["input_ids"]]
    if ids != tokenizer(text, add_special_tokens=False)["input_ids"]:
        raise HarnessBug(f"two ways to tokenise {problem.prompt_id} differ: frameworks would not see the same prompt")
    return text, ids


def observations(tokenizer: Any, problem: Problem) -> list[list[int]]:
    """Token ids of what the environment says after each turn but the last: it follows the turn's EOS as it stands."""
    texts = problem.meta.get("observations", [])
    return [[int(token) for token in tokenizer(text, add_special_tokens=False)["input_ids"]] for text in texts]


def seal(folder: Path, facts: dict[str, Any]) -> None:
    """Write bundle.json over the files that stand in `folder`; `facts` is all of it but schema, hash, files, sizes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): sha256_file(path) for path in paths}
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}
    sealed = {"schema": SCHEMA, "hash": files_hash(files), **facts, "files": files, "sizes": sizes}
    (folder / "bundle.json").write_text(json.dumps(sealed, indent=1) + "\n", encoding="utf-8")
