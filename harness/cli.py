"""The `rlaxes` command. Each command prints words or a table, or with --json one object on standard output."""

import typer

from harness.commands import axes, environments, export, foreign, history, ledgers, plan, published, runs, track

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
    export.export,
    foreign.ingest,
    foreign.audit,
    axes.axes,
    history.history,
    environments.doctor,
):
    app.command()(command)


def main() -> None:
    """Entry point of the console script."""
    app()
