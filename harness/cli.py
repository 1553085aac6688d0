"""The `rlaxes` command. Each command prints words or a table, or with --json one object on standard output."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
import yaml
from rich.console import Console

from harness.audit import check_run
from harness.audit.rules import RULES
from harness.errors import HarnessBug, RlaxesError, UserError
from harness.execute import environments
from harness.execute.adapter import find_adapter
from harness.execute.doctor import diagnose
from harness.execute.locks import adapter_jobs, write_lock
from harness.execute.machine import usable_cores
from harness.execute.plan import plan_cells
from harness.execute.prepare import sync_environments
from harness.execute.run_folder import find_run
from harness.execute.session import choices_of, drill_choices, run_session
from harness.ingest.examine import Examined, examine
from harness.report.build import build_report
from harness.report.console import print_comparison
from harness.report.drills import print_drills
from harness.report.publish import publish_run
from harness.report.trace import render_trace, trace_object

EXIT_FINE, EXIT_BROKEN, EXIT_COULD_NOT_MEASURE, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 3, 4, 130

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
env_app = typer.Typer(
    no_args_is_help=True, help="The environments of the adapters: one per lock, shared by all checkouts."
)
app.add_typer(env_app, name="env")
words = Console(stderr=True)

Overrides = Annotated[
    list[str] | None, typer.Argument(help="Settings as key=value, e.g. adapter=reference,trl repeats=3")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else there.")]
Output = Annotated[Path, typer.Option(help="The folder that holds the runs.")]
RunName = Annotated[str, typer.Argument(help="A run: its folder, its id, or `latest`.")]
ShowConfig = Annotated[bool, typer.Option("--cfg", help="Print the resolved configuration and stop.")]


def _exit_with(code: int, message: str, *, as_json: bool) -> typer.Exit:
    words.print(message, style="red", markup=False, highlight=False)
    if as_json:
        _print_json({"error": message, "exit": code})
    return typer.Exit(code)


P = ParamSpec("P")


def _one_line_errors(command: Callable[P, None]) -> Callable[P, None]:
    """A mistake of the user's or of the machine's is one line and an exit code; a bug of ours keeps its traceback."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.get("as_json"))
        try:
            command(*args, **kwargs)
        except UserError as error:
            raise _exit_with(EXIT_USAGE, f"rlaxes: {error}", as_json=as_json) from error
        except HarnessBug:
            raise
        except (RlaxesError, OSError) as error:
            raise _exit_with(EXIT_COULD_NOT_MEASURE, f"rlaxes: {error}", as_json=as_json) from error
        except KeyboardInterrupt as error:
            message = "rlaxes: interrupted; the same command goes on where this one stopped"
            raise _exit_with(EXIT_INTERRUPTED, message, as_json=as_json) from error

    return guarded


def _print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, indent=1, default=str) + "\n")


def _run_and_report(overrides: list[str] | None, *, cfg: bool, as_json: bool, single: bool) -> None:
    choices = choices_of(overrides or [], single=single)
    if cfg:
        _show_configs({choice.label: choice.config for choice in choices}, as_json=as_json)
        return
    run = run_session(choices, words)
    words.print("measuring and writing the report", highlight=False)
    model = build_report(run)
    if as_json:
        _print_json(model.as_dict())
    else:
        print_comparison(model, Console(), run / "report.html")
    if any(cell["status"] == "failed" or (cell["status"] == "not_run" and cell["cause"]) for cell in model.cells):
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)


def _show_configs(configs: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _print_json(configs)
    else:
        sys.stdout.write(yaml.safe_dump(configs, sort_keys=False))


@app.command()
@_one_line_errors
def compare(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Run a task through several adapters in turn, measure, and print the comparison; resumes what was interrupted."""
    _run_and_report(overrides, cfg=cfg, as_json=as_json, single=False)


@app.command()
@_one_line_errors
def run(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Run one cell once, and report on it."""
    _run_and_report(overrides, cfg=cfg, as_json=as_json, single=True)


@app.command()
@_one_line_errors
def drill(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Break a cell on purpose (fault=...), beside the same undisturbed, and say whether what followed is the same
    experiment. Ends with 0 if each is, 1 if one is not."""
    choices = drill_choices(overrides or [])
    if cfg:
        _show_configs({choice.label: choice.config for choice in choices}, as_json=as_json)
        return
    run = run_session(choices, words)
    model = build_report(run)
    if as_json:
        _print_json(model.as_dict())
    else:
        print_drills(model, Console())
        Console().print(str(run / "report.html"), markup=False, highlight=False, soft_wrap=True)
    if any(cell["status"] != "ok" for cell in model.cells) or any(v["continues"] is None for v in model.verdicts):
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)
    if not all(verdict["continues"] for verdict in model.verdicts):
        raise typer.Exit(EXIT_BROKEN)


@app.command()
@_one_line_errors
def report(run: RunName, output: Output = Path("runs"), as_json: AsJson = False) -> None:
    """Measure a run again from its ledgers and write report.json, report.md and report.html."""
    folder = find_run(run, output)
    model = build_report(folder)
    if as_json:
        _print_json(model.as_dict())
    else:
        print_comparison(model, Console(), folder / "report.html")


@app.command()
@_one_line_errors
def check(run: RunName, output: Output = Path("runs"), as_json: AsJson = False) -> None:
    """Is every ledger of a run whole and lawful? Ends with 0 if so, else with the place of each violation."""
    violations = check_run(find_run(run, output))
    if as_json:
        _print_json({"ok": not violations, "violations": [violation.as_dict() for violation in violations]})
    for violation in violations:
        line = f"{violation.rule} [{violation.table}] {violation.where}: {violation.detail}"
        words.print(line, markup=False, highlight=False, soft_wrap=True)
    if not violations and not as_json:
        Console().print("the ledgers are whole and lawful", highlight=False)
    if violations:
        raise typer.Exit(EXIT_BROKEN)


@app.command()
@_one_line_errors
def trace(run: RunName, sample_id: str, cell: str = "", output: Output = Path("runs"), as_json: AsJson = False) -> None:
    """The way of one sample: prompt, version that sampled it, verifier, batch, optimizer step, resulting version."""
    folder = find_run(run, output)
    if as_json:
        _print_json(trace_object(folder, sample_id, cell or None))
    else:
        sys.stdout.write(render_trace(folder, sample_id, cell or None) + "\n")


@app.command()
@_one_line_errors
def publish(
    run: RunName, output: Output = Path("runs"), results: Path = Path("results"), as_json: AsJson = False
) -> None:
    """Write a run's dated table into results/<date>/<profile>/; what is published is never overwritten."""
    folder = publish_run(find_run(run, output), results)
    if as_json:
        _print_json({"published": str(folder)})
    else:
        Console().print(f"published in {folder}", highlight=False)


@app.command()
@_one_line_errors
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
        _print_json(done.as_dict())
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
        _print_json({"rules": told})
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


@env_app.command("list")
@_one_line_errors
def env_list(as_json: AsJson = False) -> None:
    """The environments in the cache, with their locks and sizes."""
    found = environments.list_environments()
    if as_json:
        _print_json({"environments": [vars(environment) for environment in found]})
        return
    for environment in found:
        size = f"{environment.size_bytes / 2**30:.1f} GiB, {environment.packages} packages"
        Console().print(f"{environment.name}  {size}  {environment.path}", highlight=False, soft_wrap=True)
    total = sum(environment.size_bytes for environment in found) / 2**30
    Console().print(f"{len(found)} environments, {total:.1f} GiB (what they share is counted in each)", highlight=False)


@env_app.command("sync")
@_one_line_errors
def env_sync(overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Make the environments that a run with these settings needs."""
    cells = plan_cells(choices_of(overrides or [], single=False))
    synced = sync_environments(cells, lambda line: words.print(line, markup=False, highlight=False))
    if as_json:
        _print_json({"environments": synced})


@env_app.command("lock")
@_one_line_errors
def env_lock(adapter: str, as_json: AsJson = False) -> None:
    """Compile the locks of an adapter from what its adapter.yaml (of rlaxes' own: pyproject.toml) asks for."""
    jobs = adapter_jobs(find_adapter(adapter))
    if not jobs:
        raise UserError(f"no profile of adapter {adapter} has both a lock and `requires`")
    changed = {str(job.target): write_lock(job) for job in jobs}
    if as_json:
        _print_json({"locks": changed})
        return
    for lock, new in changed.items():
        Console().print(f"{lock}: {'changed' if new else 'unchanged'}", highlight=False, soft_wrap=True)


@env_app.command("remove")
@_one_line_errors
def env_remove(name: str, as_json: AsJson = False) -> None:
    """Remove an environment from the cache by its name (see `env list`)."""
    environments.remove_environment(name)
    if as_json:
        _print_json({"removed": name})


@app.command()
@_one_line_errors
def doctor(
    adapter: Annotated[str | None, typer.Argument()] = None, profile: str = "cpu", as_json: AsJson = False
) -> None:
    """What is missing or has drifted: environments, locks, hook points, disk, threads."""
    checks = diagnose(adapter, profile)
    if as_json:
        _print_json({"ok": all(c.ok for c in checks), "cores": usable_cores(), "checks": [vars(c) for c in checks]})
    else:
        for c in checks:
            mend = f"  -> {c.mend}" if c.mend and not c.ok else ""
            Console().print(f"{'ok  ' if c.ok else 'FAIL'} {c.name}: {c.detail}{mend}", markup=False, highlight=False)
    if not all(c.ok for c in checks):
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)


def main() -> None:
    """Entry point of the console script."""
    app()
