"""Commands that read what was written elsewhere: audit."""

from typing import Annotated

import typer
from rich.console import Console

from harness.audit.rules import RULES
from harness.commands.words import EXIT_BROKEN, AsJson, one_line_errors, print_json, words
from harness.errors import UserError
from harness.ingest.examine import Examined, examine


@one_line_errors
def audit(
    paths: Annotated[list[str] | None, typer.Argument(help="Logs, tables (JSON, CSV, markdown), folders, or -")] = None,
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
    done = examine(paths, dict(_quantity(word) for word in given or []))
    if as_json:
        print_json(done.as_dict())
    else:
        _print_examined(done)
    if done.findings:
        raise typer.Exit(EXIT_BROKEN)


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
    for found in done.findings:
        told = f"{found.severity}: {found.case}: {found.evidence}\n  {found.where}; rule {found.rule} [{found.source}]"
        line = f"{told}\n  would be true if {found.would_be_true_if}"
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
    steps = f"{len(done.findings)} findings in {done.cases} steps and rows of {len(done.files)} files"
    Console().print(steps, highlight=False)
