"""transformers' `trainer_state.json`, as TRL's trainers leave it in each checkpoint: a list `log_history` of entries.

Read as a stream, an entry at a time, whether the file is pretty-printed or one line: `json.load` of a long run's state
would hold all of it. A file cut anywhere gives the entries that it has whole.
"""

import json
import re
from collections.abc import Iterator
from typing import BinaryIO

from harness.ingest.flat import flatten
from harness.ingest.readers.trl_values import EVAL, OF_REWARDS, entry_block
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

HISTORY = re.compile(rb'"log_history"\s*:\s*\[')
SETTING = re.compile(
    rb'"(logging_steps|max_steps|num_train_epochs|save_steps|eval_steps|train_batch_size)"\s*:\s*'
    rb"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=\s*[,}])"
)
TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A whole string (or one that the data ends in) or a bracket: what tells where an entry ends."""
OF_REWARDS_KEY = re.compile(rf'"((?:{EVAL})?(?:{"|".join(OF_REWARDS)})[^"\n]*)"\s*:'.encode())
CHUNK = 1024 * 1024
LONGEST_ENTRY = 1024 * 1024
"""An entry beyond this is no entry of a log: one has a number for each of a few dozen keys."""
MARGIN = 4096
"""What is kept of the text between two histories, so that no key is cut in two."""


class TrlTrainerState:
    """Every entry of every `log_history` in a file."""

    framework, shape = "trl", "trainer state"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By a history whose entries speak of rewards; the state of supervised training is not taken for one."""
        if not HISTORY.search(head) or not (found := OF_REWARDS_KEY.search(head)):
            return None
        return Recognised(self.framework, self.shape, None, f"log_history with {found[1].decode('utf-8', 'replace')}")

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block an entry. The settings around a history come after it, as one block of kind `config`."""
        text, told = _Text(stream), Told(warn)
        settings: dict[str, float] = {}
        histories = 0
        while text.skip_to_history(settings):
            if histories:
                yield from _config(settings, text.line, _scope(histories))
                told(text.line, f"a further log_history: its entries are kept apart, as {_scope(histories + 1)!r}")
            histories += 1
            yield from _entries(text, told, _scope(histories))
        yield from _config(settings, text.line, _scope(histories))
        told.end()


def _scope(history: int) -> str:
    return f"state {history}" if history > 1 else ""


def _config(settings: dict[str, float], line: int, scope: str) -> Iterator[Block]:
    if settings:
        yield Block(None, line, "config", dict(settings), scope)
        settings.clear()


class _Text:
    """A window on the file, from where it has been read to (`at`), with the line that this is on."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.data, self.at, self.line = stream, b"", 0, 1

    def more(self) -> bool:
        """Read on; False at the end of the file."""
        read = self._stream.read(CHUNK)
        self.data, self.at = self.data[self.at :] + read, 0
        return bool(read)

    def go_to(self, at: int) -> None:
        """Leave behind what stands before `at`."""
        self.line += self.data.count(b"\n", self.at, at)
        self.at = at

    def skip_to_history(self, settings: dict[str, float]) -> bool:
        """Go to the first entry of the next history, and note the settings on the way; False if there is none."""
        while True:
            found = HISTORY.search(self.data, self.at)
            for setting in SETTING.finditer(self.data, self.at, found.start() if found else len(self.data)):
                settings.setdefault(setting[1].decode(), float(setting[2]))
            if found:
                self.go_to(found.end())
                return True
            self.go_to(max(self.at, len(self.data) - MARGIN))
            if not self.more():
                return False

    def next_entry(self) -> bytes | None:
        """Go past the next entry: its bytes, nothing (`b""`) at the end of the list, None where the window ends."""
        depth, start = 0, self.at
        for token in TOKEN.finditer(self.data, self.at):
            first = self.data[token.start()]
            if first in b"{[":
                start = start if depth else token.start()
                depth += 1
            elif first in b"}]":
                depth -= 1
                if depth <= 0:
                    self.go_to(token.end())
                    return self.data[start : token.end()] if depth == 0 else b""
        return None


def _entries(text: _Text, told: Told, scope: str) -> Iterator[Block]:
    """The entries up to the bracket that closes their list; nothing of an entry that the file ends in."""
    while (raw := text.next_entry()) != b"":
        if raw is not None:
            yield from _block(raw, text.line - raw.count(b"\n"), told, scope)
        elif len(text.data) - text.at > LONGEST_ENTRY:
            told(text.line, f"an entry of more than {LONGEST_ENTRY >> 20} MiB: it and its list are not read on")
            text.go_to(len(text.data))
            return
        elif not text.more():
            told(text.line, "the file ends within log_history: the entries that it has whole were read")
            text.go_to(len(text.data))  # else each list that seems to begin within would be looked through to the end
            return


def _block(raw: bytes, line: int, told: Told, scope: str) -> Iterator[Block]:
    text = raw.decode("utf-8", "replace")
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        told(line, "something in log_history is no entry: left out")
        return
    flat = flatten(entry, lambda words: told(line, words), text)
    yield entry_block(flat.values, line, scope=scope, words=flat.words)
