"""The `rlaxes` command. Each command prints words or a table, or with --json one object on standard output."""

import sys
import traceback
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
from harness.commands.words import EXIT_COULD_NOT_MEASURE, EXIT_USAGE

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
    """Entry point of the console script. A bug of ours keeps its traceback, and ends with 3: Python's 1 would be a
    regression to whoever reads exit codes."""
    try:
        app()
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        sys.exit(EXIT_COULD_NOT_MEASURE)
