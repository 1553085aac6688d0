"""Commands about what adapters run in: env list, sync, lock, remove; doctor."""

from typing import Annotated

import typer
from rich.console import Console

from harness.commands.words import EXIT_COULD_NOT_MEASURE, AsJson, Overrides, one_line_errors, print_json, words
from harness.errors import UserError
from harness.execute import environments
from harness.execute.adapter import find_adapter, not_run
from harness.execute.doctor import diagnose
from harness.execute.locks import adapter_jobs, write_lock
from harness.execute.machine import usable_cores
from harness.execute.plan import plan_cells
from harness.execute.prepare import sync_environments
from harness.execute.session import choices_of
from harness.export.trackers import export_environment

env_app = typer.Typer(
    no_args_is_help=True, help="The environments of the adapters: one per lock, shared by all checkouts."
)

Tools = Annotated[
    bool,
    typer.Option(
        "--tools", help="Also what `export` writes for MLflow, trackio and W&B with; alone, that and no other."
    ),
]


@env_app.command("list")
@one_line_errors
def env_list(as_json: AsJson = False) -> None:
    """The environments in the cache, with their locks and sizes."""
    found = environments.list_environments()
    if as_json:
        print_json({"environments": [vars(environment) for environment in found]})
        return
    for environment in found:
        size = f"{environment.size_bytes / 2**30:.1f} GiB, {environment.packages} packages"
        Console().print(f"{environment.name}  {size}  {environment.path}", highlight=False, soft_wrap=True)
    total = sum(environment.size_bytes for environment in found) / 2**30
    Console().print(f"{len(found)} environments, {total:.1f} GiB (what they share is counted in each)", highlight=False)


@env_app.command("sync")
@one_line_errors
def env_sync(overrides: Overrides = None, tools: Tools = False, as_json: AsJson = False) -> None:
    """Make the environments that a run with these settings needs."""

    def say(line: str) -> None:
        words.print(line, markup=False, highlight=False)

    alone = tools and not overrides
    synced = {} if alone else sync_environments(plan_cells(choices_of(overrides or [], single=False)), say)
    if tools:
        made = export_environment(say)
        synced[made.name] = str(made.python)
    if as_json:
        print_json({"environments": synced})


@env_app.command("lock")
@one_line_errors
def env_lock(adapter: str, as_json: AsJson = False) -> None:
    """Compile the locks of an adapter from what its adapter.yaml (of rlaxes' own: pyproject.toml) asks for."""
    found = find_adapter(adapter)
    if not found.runs:
        raise UserError(not_run(found))
    jobs = adapter_jobs(found)
    if not jobs:
        raise UserError(f"no profile of adapter {adapter} has both a lock and `requires`")
    changed = {str(job.target): write_lock(job) for job in jobs}
    if as_json:
        print_json({"locks": changed})
        return
    for lock, new in changed.items():
        Console().print(f"{lock}: {'changed' if new else 'unchanged'}", highlight=False, soft_wrap=True)


@env_app.command("remove")
@one_line_errors
def env_remove(name: str, as_json: AsJson = False) -> None:
    """Remove an environment from the cache by its name (see `env list`)."""
    environments.remove_environment(name)
    if as_json:
        print_json({"removed": name})


@one_line_errors
def doctor(
    adapter: Annotated[str | None, typer.Argument()] = None, profile: str = "cpu", as_json: AsJson = False
) -> None:
    """What is missing or has drifted: environments, locks, hook points, disk, threads."""
    checks = diagnose(adapter, profile)
    if as_json:
        print_json({"ok": all(c.ok for c in checks), "cores": usable_cores(), "checks": [vars(c) for c in checks]})
    else:
        for c in checks:
            mend = f"  -> {c.mend}" if c.mend and not c.ok else ""
            Console().print(f"{'ok  ' if c.ok else 'FAIL'} {c.name}: {c.detail}{mend}", markup=False, highlight=False)
    if not all(c.ok for c in checks):
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)
