"""For tests of `rlaxes ingest`: runs the command in this process, and writes logs of verl's console."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from typer.testing import CliRunner

from harness.cli import app
from harness.execute.run_folder import MANIFEST


def command(*words: str | Path, stdin: bytes | None = None) -> tuple[int, str, str]:
    """Exit code, standard output, standard error; an exception that is no exit passes through."""
    done = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def ingested(output: Path, *paths: str | Path) -> list[dict[str, Any]]:
    """What `ingest --json` tells of each run."""
    code, printed, _ = command("ingest", *paths, "--output", output, "--json")
    assert code == 0
    told = json.loads(printed)
    return list(told["runs"]) if "runs" in told else [told]


def rows_of(told: Mapping[str, Any]) -> dict[str, list[tuple[int | None, float]]]:
    """(step, value) of each key in the ledger's table, in its order."""
    (path,) = Path(told["ledger"]).glob("*.native.parquet")
    out: dict[str, list[tuple[int | None, float]]] = {}
    for row in pq.read_table(path).to_pylist():
        out.setdefault(row["key"], []).append((row["step"], row["value"]))
    return out


def manifest_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of its run folder."""
    content: dict[str, Any] = json.loads((Path(told["ledger"]).parent / MANIFEST).read_text())
    return content


def verl_log(steps: Sequence[int], seed: float = 0.0, *, tokens: Sequence[int] = ()) -> str:
    """Lines of verl's console; numbers that differ from seed to seed."""
    lines = []
    for place, step in enumerate(steps):
        loss, norm = 0.1234567 / step + seed, 1.5678901 + step * 0.01 + seed
        line = f"step:{step} - actor/pg_loss:{loss!r} - actor/grad_norm:{norm!r} - training/global_step:{step}"
        lines.append(line + (f" - perf/total_num_tokens:{tokens[place]}" if tokens else ""))
    return "\n".join(lines) + "\n"
