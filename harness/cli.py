"""The `rlaxes` command. Each command prints words or a table, or with --json one object on standard output."""

from typing import Any

import typer

from harness.commands import (
    axes,
    choose,
    environments,
    export,
    foreign,
    history,
    ledgers,
    plan,
    published,
    runs,
    site,
    track,
)
from harness.commands.words import EXIT_USAGE

# Errors of usage have one parent; typer ends with 2 for them, which is the code of "cannot tell" here.
usage_error: Any = typer.BadParameter.__base__
usage_error.exit_code = EXIT_USAGE

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(environments.env_app, name="env")
app.add_typer(plan.plan_app, name="plan")
for command in (
    runs.compare,
    runs.run,
    runs.drill,
    track.track,
    ledgers.report,
    ledgers.check,
    ledgers.trace,
    published.publish,
    published.correct,
    site.site,
    export.export,
    foreign.ingest,
    foreign.audit,
    axes.axes,
    choose.choose,
    history.history,
    environments.doctor,
):
    app.command()(command)


def main() -> None:
    """Entry point of the console script."""
    app()
