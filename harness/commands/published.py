"""Commands about what is published: publish, correct."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.commands.words import AsJson, Output, one_line_errors, print_json
from harness.errors import UserError
from harness.execute.run_folder import find_run
from harness.report.grades import EVIDENCE

Results = Annotated[Path, typer.Option(help="The folder of published results.")]


@one_line_errors
def publish(
    run: Annotated[str, typer.Argument(help="A run (its folder, its id, `latest`), or a page below results/.")],
    output: Output = Path("runs"),
    results: Results = Path("results"),
    evidence: Annotated[str | None, typer.Option(help=f"For a page: {', '.join(EVIDENCE)}.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a run's dated table into results/<date>/<profile>/, or take in a page that lies there. What is published is
    sealed and never changed; `rlaxes correct` puts a correction beside it."""
    from harness.report.publish import publish_page, publish_run  # draws, as `report` does

    if Path(run).is_file():
        grade = next((grade for grade in EVIDENCE if grade == evidence), None)
        if grade is None:
            raise UserError(f"say by what evidence {run} stands: --evidence, one of {', '.join(EVIDENCE)}")
        published = publish_page(Path(run), grade, results)
    elif evidence is not None:
        raise UserError("--evidence is for a page: the evidence of a run is told by the run")
    else:
        published = publish_run(find_run(run, output), results)
    if as_json:
        print_json({"published": str(published)})
    else:
        Console().print(f"published in {published}", highlight=False, markup=False, soft_wrap=True)


@one_line_errors
def correct(
    published: Annotated[Path, typer.Argument(help="A published run or page: its path, or its name.")],
    what: Annotated[str, typer.Option(help="What does not hold, or what holds instead.")],
    why: Annotated[str, typer.Option(help="How it came about, and how it was found.")],
    by: Annotated[str | None, typer.Option(help="Who says so.")] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(help="What of a run it speaks of: adapter/layout/track/measure, * for any; again for more."),
    ] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take back what it speaks of.")] = False,
    results: Results = Path("results"),
    as_json: AsJson = False,
) -> None:
    """Put a dated correction beside something that was published; nothing that was published is changed."""
    from harness.report.publish import correct as write  # draws, as `report` does

    path = write(published, results, what=what, why=why, by=by, rows=tuple(rows or ()), withdrawn=withdraw)
    if as_json:
        print_json({"correction": str(path)})
    else:
        Console().print(f"corrected in {path}", highlight=False, markup=False, soft_wrap=True)
