"""The command that hands a run to the tools that people use: export."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.commands.words import AsJson, RunName, one_line_errors, print_json, words
from harness.execute.run_folder import find_run

To = Annotated[
    list[str],
    typer.Option("--to", help="csv, latex, mlflow, perfetto, tensorboard, trackio or wandb; give it again for more."),
]


@one_line_errors
def export(
    run: RunName,
    to: To,
    output: Annotated[Path, typer.Option(help="Below it each format has a folder of its own.")] = Path("exports"),
    cell: Annotated[
        str | None, typer.Option(help="The one cell whose timeline perfetto gets; all if not given.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder that holds the runs.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Write what a run's report says, and its curves, for MLflow, W&B, TensorBoard, trackio, Perfetto, CSV or LaTeX."""
    from harness.export.export import export_run  # TensorBoard's messages, which no other command needs

    def say(line: str) -> None:
        words.print(line, markup=False, highlight=False, soft_wrap=True)

    written = export_run(find_run(run, runs), to, output, say, cell)
    if as_json:
        print_json({"exported": {name: str(folder) for name, folder in written.items()}})
        return
    for name, folder in written.items():
        Console().print(f"{name}: {folder}", markup=False, highlight=False, soft_wrap=True)
