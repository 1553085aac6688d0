"""What all commands share: how they print, how they end, the options that several have."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from rich.console import Console

from harness.errors import CannotTell, HarnessBug, RlaxesError, UserError

EXIT_FINE, EXIT_REGRESSION, EXIT_CANNOT_TELL, EXIT_COULD_NOT_MEASURE, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 130
EXIT_BROKEN = EXIT_REGRESSION
"""Something was found to be wrong: a regression, a ledger that breaks a rule, a drill that lost its experiment."""
words = Console(stderr=True)
"""Progress and words go to standard error: standard output is for results."""

Overrides = Annotated[
    list[str] | None, typer.Argument(help="Settings as key=value, e.g. adapter=reference,trl repeats=3")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else there.")]
Output = Annotated[Path, typer.Option(help="The folder that holds the runs.")]
RunName = Annotated[str, typer.Argument(help="A run: its folder, its id, or `latest`.")]


def _exit_with(code: int, message: str, *, as_json: bool) -> typer.Exit:
    words.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print_json({"error": message, "exit": code})
    return typer.Exit(code)


P = ParamSpec("P")


def one_line_errors(command: Callable[P, None]) -> Callable[P, None]:
    """A mistake of the user's or of the machine's is one line and an exit code; a bug of ours keeps its traceback."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.get("as_json"))
        try:
            command(*args, **kwargs)
        except UserError as error:
            raise _exit_with(EXIT_USAGE, f"rlaxes: {error}", as_json=as_json) from error
        except CannotTell as error:
            raise _exit_with(EXIT_CANNOT_TELL, f"rlaxes: {error}", as_json=as_json) from error
        except HarnessBug:
            raise
        except (RlaxesError, OSError) as error:
            raise _exit_with(EXIT_COULD_NOT_MEASURE, f"rlaxes: {error}", as_json=as_json) from error
        except KeyboardInterrupt as error:
            message = "rlaxes: interrupted; the same command goes on where this one stopped"
            raise _exit_with(EXIT_INTERRUPTED, message, as_json=as_json) from error

    return guarded


def print_json(content: Any) -> None:
    """One object on standard output."""
    sys.stdout.write(json.dumps(content, indent=1, default=str) + "\n")
