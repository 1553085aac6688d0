"""The exception that ended a run, out of a log that several processes wrote to.

Ray puts `(TaskRunner pid=12)` before each line of a worker, vLLM `(EngineCore pid=12)` and a logger's head, both in
colour, torch `[rank0]:`. What the main process dies of is often a wrapper around what happened elsewhere: the worker's
own exception stands before it, or in its text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
SPEAKER = re.compile(r"^\s*(?:\((?:[^()]*\b(?:pid|ip)=[^()]*|raylet|gcs_server|autoscaler[^()]*)\)|\[rank\d+\]:|\|)\s?")
LOGGER = re.compile(r"^(?:\S+ \S+\s+)?(?:ERROR|CRITICAL)\s+(?:\S+ )*?(?:\[[^\]]*\]|\S+\.py:\d+\]? --) ?")
REPEATED = re.compile(r"\s*\[repeated \d+x across[^\]]*\].*$")
EXCEPTION = re.compile(
    r"^(?P<name>Exception|[A-Za-z_][\w.]*(?:Error|Exception|Failure|Bug|Refused|Interrupt|Exit|Drift))(?:\([\w.]+\))?"
    r"(?:: ?(?P<text>.*))?$"
)
WRAPPERS = {
    "ActorDiedError", "ActorUnavailableError", "ChildFailedError", "EngineDeadError", "EngineGenerateError",
    "KeyboardInterrupt", "NodeDiedError", "ProcessRaisedException", "RayActorError", "RayTaskError", "SystemExit",
    "TaskCancelledError", "WorkerCrashedError",
}  # fmt: skip
"""What a process raises because another one failed, or because it is being ended."""
IGNORED = "Exception ignored in"
"""Python's word for an exception that ends nothing, most often while it takes itself apart; its traceback follows."""
WRAPPING = re.compile(r"Engine core initialization failed|See (?:root cause|stack trace) above")
SHOWN = 300


@dataclass(frozen=True)
class Raised:
    """An exception as a log shows it. `ended_by` is the wrapper that the run died of, where it was another process that
    raised the exception."""

    name: str
    text: str
    ended_by: str | None = None

    @property
    def wraps(self) -> bool:
        """Whether it only says that something failed elsewhere."""
        return self.name.rsplit(".", 1)[-1] in WRAPPERS or bool(WRAPPING.search(self.text))

    def words(self) -> str:
        """One line, cut to a readable length."""
        last = self.name.rsplit(".", 1)[-1]
        said = f"{last}: {self.text}" if self.text else last
        if self.ended_by:
            said = f"{said[: SHOWN // 2]}; the run ended by {self.ended_by}"
        return said[:SHOWN]


def plain(line: str) -> str:
    """A line without colours, without the process that Ray or vLLM says it is of, and without a logger's head."""
    line, before = COLOUR.sub("", line), None
    while line != before:
        before, line = line, SPEAKER.sub("", line)
    return REPEATED.sub("", LOGGER.sub("", line)).strip()


def root_exception(output: str) -> Raised | None:
    """The exception that a log ends with, or where that is a wrapper, the last one before it that is none."""
    found = list(_exceptions(output))
    if not found:
        return None
    last = found[-1]
    roots = [raised for raised in found if not raised.wraps]
    if not last.wraps or not roots:
        return last
    return Raised(roots[-1].name, roots[-1].text, last.name.rsplit(".", 1)[-1])


def _exceptions(output: str) -> Iterator[Raised]:
    ignored = False
    for line in map(plain, output.splitlines()):
        ignored = ignored or line.startswith(IGNORED)
        if match := EXCEPTION.match(line):
            if not ignored:
                yield Raised(match["name"], match["text"] or "")
            ignored = False
