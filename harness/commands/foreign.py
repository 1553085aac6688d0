"""Commands that read what was written elsewhere: ingest, audit."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from harness.audit.rules import RULES
from harness.commands.words import EXIT_BROKEN, AsJson, Output, one_line_errors, print_json, words
from harness.errors import UserError
from harness.ingest.examine import Examined, examine
from harness.ingest.ingest import Ingested
from harness.ingest.ingest import ingest as ingest_paths
from harness.ingest.sources import Source
from harness.report.measured import audit_cases

Paths = Annotated[list[str], typer.Argument(help="Logs, folders that hold some, archives, or - for standard input")]

MOST_OF_A_RULE = 3
"""Findings of one rule in one file that are printed; a run that learns nothing has one a step."""


@one_line_errors
def ingest(
    paths: Paths,
    output: Output = Path("runs"),
    version: Annotated[str | None, typer.Option(help="The framework's, where its log does not tell it.")] = None,
    warmup_steps: Annotated[int, typer.Option(min=0, help="Steps that the figures leave out at the start.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Read logs of frameworks that ran elsewhere into run folders, for `rlaxes report` and `rlaxes check`."""
    with _progress() as watch:
        done = ingest_paths(paths, output, watch, version, warmup_steps)
    if as_json:
        print_json(done.as_dict())
    else:
        _print_ingested(done)


@contextmanager
def _progress() -> Iterator[Callable[[Sequence[Source]], Callable[[int], None]]]:
    """A bar of the bytes read, on standard error; of a pipe, whose size nobody knows, only what went through."""
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=words, transient=True) as bar:

        def watch(sources: Sequence[Source]) -> Callable[[int], None]:
            sizes = [source.size for source in sources if source.size is not None]
            task = bar.add_task("reading", total=sum(sizes) if len(sizes) == len(sources) else None)
            return lambda count: bar.advance(task, count)

        yield watch


def _print_ingested(done: Ingested) -> None:
    for warning in dict.fromkeys(warning for run in done.runs for warning in run.manifest["warnings"]):
        words.print(warning, markup=False, highlight=False, soft_wrap=True)
    for run in done.runs:
        told = run.manifest
        files = ", ".join(file["name"] for file in told["files"])
        known = f"{len(told['series'])} series, {len(told['unknown_keys'])} keys unknown"
        line = (
            f"{told['framework']} {told['version'] or '(version not told)'}: {told['steps']} steps, {known}, of {files}"
        )
        Console().print(f"{line}\n{run.folder}", markup=False, highlight=False, soft_wrap=True)


@one_line_errors
def audit(
    paths: Annotated[list[str] | None, typer.Argument(help="Logs, tables, run folders, folders, or -")] = None,
    given: Annotated[list[str] | None, typer.Option(help="What stands nowhere in it, e.g. memory_card=141e9")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Which numbers of a log or a published table cannot be true, or contradict each other? Ends with 1 if any does."""
    if rules:
        _list_rules(as_json=as_json)
        return
    if not paths:
        raise UserError("audit what? Give logs, tables, folders, or - for standard input")
    done = _examined(paths, dict(_quantity(word) for word in given or []))
    if as_json:
        print_json(done.as_dict())
    else:
        _print_examined(done)
    if done.findings:
        raise typer.Exit(EXIT_BROKEN)


def _examined(paths: list[str], given: dict[str, float]) -> Examined:
    """Run folders by their ledgers, all else as it was written."""
    runs = [path for path in paths if (Path(path) / "manifest.json").exists() and (Path(path) / "ledger").is_dir()]
    rest = [path for path in paths if path not in runs]
    done = examine(rest, given) if rest else Examined()
    for run in runs:
        done.add(run, "run folder", audit_cases(Path(run)))
    return done


def _quantity(word: str) -> tuple[str, float]:
    name, _, value = word.partition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise UserError(f"--given {word}: give a quantity and a number, as memory_card=141e9") from error


def _list_rules(*, as_json: bool) -> None:
    told = [{"rule": r.name, "severity": r.severity, "says": r.says, "source": r.source} for r in RULES]
    if as_json:
        print_json({"rules": told})
        return
    for rule in told:
        line = f"{rule['rule']} ({rule['severity']}): {rule['says']} [{rule['source']}]"
        Console().print(line, markup=False, highlight=False, soft_wrap=True)


def _print_examined(done: Examined) -> None:
    for warning in done.warnings:
        words.print(warning, markup=False, highlight=False, soft_wrap=True)
    of_rule = Counter((found.rule, found.where.file) for found in done.findings)
    shown: Counter[tuple[str, str]] = Counter()
    for found in done.findings:
        kind = found.rule, found.where.file
        shown[kind] += 1
        if shown[kind] > MOST_OF_A_RULE:
            continue
        told = f"{found.severity}: {found.case}: {found.evidence}\n  {found.where}; rule {found.rule} [{found.source}]"
        if shown[kind] == MOST_OF_A_RULE < of_rule[kind]:
            told += f"\n  and {of_rule[kind] - MOST_OF_A_RULE} more of this rule in this file (all with --json)"
        line = f"{told}\n  would be true if {found.would_be_true_if}"
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
    steps = f"{len(done.findings)} findings in {done.cases} steps and rows of {len(done.files)} files"
    Console().print(steps, highlight=False)
