"""The command that holds every framework against a team's requirements: choose."""

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt
from rich.table import Table
from rich.text import Text

from harness.choose.answer import MET, NOT_MET, STATES, Answer
from harness.choose.ask import ask_for_requirements
from harness.choose.asked import NEEDS, Requirements
from harness.choose.choice import Choice
from harness.choose.choice import choose as choice_of
from harness.choose.evidence import Clock
from harness.choose.known import known_frameworks
from harness.choose.page import choice_html, choice_markdown, mark
from harness.choose.requirements import read_requirements
from harness.choose.topics import TOPICS
from harness.commands.axes import mapped
from harness.commands.words import AsJson, one_line_errors, print_json, words
from harness.errors import UserError
from harness.execute.adapter import find_adapters
from harness.execute.provenance import rlaxes_version
from harness.report.dated import DatedReport, read_reports

EXAMPLE = Path(__file__).resolve().parents[1] / "choose" / "example.yaml"
STALE_DAYS = 180
FILES = ("requirements.yaml", "choice.md", "choice.html")
STYLES = {MET: "", NOT_MET: "red"}


@one_line_errors
def choose(
    file: Annotated[str | None, typer.Argument(help="Requirements as YAML, or -. None: they are asked for.")] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a file to begin with, and stop.")] = False,
    output: Annotated[Path | None, typer.Option(help="The new folder of the page. [default: choice-DATE]")] = None,
    results: Annotated[Path, typer.Option(help="The folder of published runs.")] = Path("results"),
    stale_days: Annotated[int, typer.Option(min=1, help="Older evidence is marked stale.")] = STALE_DAYS,
    as_json: AsJson = False,
) -> None:
    """Which framework meets our requirements, by what evidence? A page for a decision record; no score, no ranking."""
    if example:
        sys.stdout.write(EXAMPLE.read_text(encoding="utf-8"))
        return
    clock = Clock(datetime.datetime.now(datetime.UTC).date(), stale_days)
    folder = output or (None if as_json else Path(f"choice-{clock.today}"))
    if folder and folder.exists():
        raise UserError(f"{folder} is there already, and a page that somebody signed is not written over: --output NEW")
    if not results.exists():
        _say(f"there is no folder {results}: nothing is shown as measured here (--results)")
    choice = _answer(_requirements(file), clock, results)
    if folder:
        _write(choice, folder)
    if as_json:
        print_json(choice.as_dict())
    else:
        _print(choice, Console())
        Console().print(f"{folder}/{FILES[2]}", markup=False, highlight=False, soft_wrap=True)


def _requirements(file: str | None) -> Requirements:
    if file == "-":
        return read_requirements(sys.stdin.read(), "standard input")
    if file:
        return read_requirements(_text(Path(file)), file)
    if not sys.stdin.isatty():
        raise UserError(
            "no requirements: `rlaxes choose FILE` (`rlaxes choose --example` prints one), or run it in a terminal"
        )
    return ask_for_requirements(_ask, _say)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def _ask(question: str) -> str:
    try:
        return Prompt.ask(question, console=words, default="", show_default=False)
    except EOFError as error:
        raise UserError("the terminal was closed before all was asked; `rlaxes choose FILE` asks nothing") from error


def _say(line: str) -> None:
    words.print(line, markup=False, highlight=False)


def _answer(asked: Requirements, clock: Clock, results: Path) -> Choice:
    reports: Sequence[DatedReport] = read_reports([results]) if results.exists() else ()
    running = [name for name, adapter in find_adapters().items() if adapter.runs]
    frameworks = known_frameworks(mapped([]), running, reports)
    return choice_of(asked, frameworks, clock, rlaxes_version(), [report.name for report in reports])


def _write(choice: Choice, folder: Path) -> None:
    """The page with the requirements that it answers, so that it can be made anew."""
    folder.mkdir(parents=True)
    texts = (choice.asked.as_yaml(), choice_markdown(choice), choice_html(choice))
    for name, text in zip(FILES, texts, strict=True):
        (folder / name).write_text(text, encoding="utf-8")


def _print(choice: Choice, console: Console) -> None:
    """Of each framework what is met and what is not, by the grade of what is known; the page has the rest."""
    for framework in choice.frameworks:
        console.print(Text(framework.title, style="bold"))
        grid = Table.grid(padding=(0, 1))
        for width in (6, 8, None):
            grid.add_column(width=width)
        for need in NEEDS[:2]:
            asked = [answer for answer in choice.of(framework.name) if answer.requirement.need == need]
            for state in STATES:
                if said := "; ".join(map(_asked, (answer for answer in asked if answer.state == state))):
                    grid.add_row(f"  {need}", Text(state, style=STYLES.get(state, "yellow")), said)
        console.print(grid)
    console.print("nothing is ranked; the page has the evidence of each, and what would show more")


def _asked(answer: Answer) -> str:
    one = answer.requirement
    return f"{TOPICS[one.topic].title} {one.asked}" + (f" ({mark(answer)})" if mark(answer) else "")
