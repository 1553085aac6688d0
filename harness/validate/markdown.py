"""Tables of the page."""

from collections.abc import Iterable, Sequence

from harness.validate.outcome import Check, Outcome, checks


def percent(share: float) -> str:
    """With its sign, and two decimals where it is small."""
    return f"{share:+.2%}" if abs(share) < 0.01 else f"{share:+.1%}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def checked(outcomes: list[Outcome], *, fitted: bool = False) -> str:
    """The predictions among the outcomes, a row each; what was refused stands elsewhere."""
    heads = ["row", "formula", "predicted, s", "reported, s", "error", *(["fitted on"] if fitted else [])]
    rows = []
    for check in checks(outcomes):
        told = [check.row, f"`{check.formula}`", f"{check.predicted:.5g}", f"{check.reported:g}", _error(check)]
        rows.append(told + ([_fitted(check)] if fitted else []))
    return table(heads, rows)


def _error(check: Check) -> str:
    return "it is fitted here" if check.row == check.fitted else percent(check.error)


def _fitted(check: Check) -> str:
    return "itself" if check.row == check.fitted else check.fitted
