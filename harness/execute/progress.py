"""Says on standard error what is happening and how long it still takes."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from harness.execute.verdict import Verdict


class Display:
    """Two bars (all cells, the running one) on a terminal; plain lines where standard error is none."""

    def __init__(self, total: int, console: Console) -> None:
        self._console, self._total = console, total
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console)
        self._live = console.is_terminal
        self._all = self._progress.add_task("all cells", total=total)
        self._one = self._progress.add_task("", total=None, visible=False)

    def __enter__(self) -> Self:
        if self._live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._progress.stop()

    def say(self, text: str) -> None:
        """One line of what is happening."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def cell_started(self, number: int, cell_id: str) -> None:
        """Cell `number` (from 1) begins."""
        self._progress.update(self._one, description=cell_id, completed=0, total=None, visible=True)
        if not self._live:
            self.say(f"[{number}/{self._total}] {cell_id}")

    def cell_progress(self, cell_progress: dict[str, Any] | None) -> None:
        """How far the running cell is, as it said itself."""
        if cell_progress is not None:
            done, total = cell_progress["done"], cell_progress["total"]
            self._progress.update(self._one, completed=done, total=total)

    def cell_ended(self, number: int, cell_id: str, verdict: Verdict, seconds: float) -> None:
        """Cell `number` has ended."""
        self._progress.update(self._all, completed=number)
        self._progress.update(self._one, visible=False)
        reason = f": {verdict.reason} [{verdict.cause}]" if verdict.reason else ""
        self.say(f"[{number}/{self._total}] {cell_id} {verdict.status} in {seconds:.1f} s{reason}")
