"""SkyRL's console: stamps of its timers, the figures between them, the dict of a step, and its progress bar.

A step begins with `Started: 'step'` and has no number of its own: that stands in a dict (`trainer/global_step`), before
one (`Step 3: `, the console tracker), or in the bar that is drawn after it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from harness.ingest.clean import Line, lines
from harness.ingest.python_dict import number_of
from harness.ingest.readers.skyrl_dicts import Dicts, Metrics
from harness.ingest.readers.skyrl_step import STEP, Open, Step
from harness.ingest.reading import Block, Kind, Recognised, Warn
from harness.ingest.told import Told

STAMP = re.compile(r"(?:^|[|\-] )(Started|Finished): '([^'\n]{1,200})'(?:, time cost: (\d+(?:\.\d+)?)s)?\s*$")
FIGURES = ("avg_", "reward/", "batch_num_seq")
FIGURE = re.compile(
    r"(avg_final_rewards|avg_response_length|batch_num_seq|batch_padded_seq_len|reward/[\w@.]+): ([-+.\w]+)(,|$)"
)
BAR = re.compile(r"Training (Batches Processed|Step Progress): +\d+%\|[^|\n]*\| (\d{1,18})/\d+")
MIRROR = re.compile(r"WANDB_MIRROR kind=(\w+) step=(\d{1,18}) metrics=(\{.*)")
MASKED = "All outputs are loss masked"
OWN_NAME = re.compile(
    rb"skyrl_entrypoint pid=|skyrl(?:_train)?\.\w+\.\w+:\w|Training Batches Processed: |WANDB_MIRROR kind="
    rb"|'async/staleness_"
)
STAMPED = re.compile(rb"Finished: '\w+', time cost: \d+\.\d\ds|Started: '(?:init_weight_sync_state|step|generate)'")
EVALUATION = ("eval/", "timing/eval", "vllm/eval/")
RESTARTED = ("init_weight_sync_state", "load_checkpoints")


class SkyRlConsole:
    """Every step of a console log of SkyRL, 0.1 (skyrl-train) to 0.4.0, synchronous and fully asynchronous."""

    framework, shape = "skyrl", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By a stamp of its timers or a name of its own."""
        found = STAMPED.search(head) or OWN_NAME.search(head)
        if not found:
            return None
        quoted = head[found.start() : found.start() + 80].split(b"\n")[0]
        return Recognised(self.framework, self.shape, None, quoted.decode("utf-8", "replace"))

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a step, one for what is timed outside of steps, and one for each record of a mirrored tracker."""
        told = Told(warn)
        run, dicts = _Run(told), Dicts(told)
        for line in lines(stream, warn):
            for metrics in dicts.take(line):
                yield from run.dict_of(metrics)
            if not dicts.within:
                yield from run.line(line)
        for metrics in dicts.rest():
            yield from run.dict_of(metrics)
        yield from run.rest()
        told.end()


class _Run:
    """The steps of a log, each given once nothing more can come to it."""

    def __init__(self, warn: Warn) -> None:
        self._warn, self._timers = warn, Open(warn)
        self._step, self._last, self._bar_is_step = Step(), -1, True

    def line(self, line: Line) -> Iterator[Block]:
        """What a line that is no part of a dict adds, and which block it completes."""
        text = line.text
        if "ed: '" in text and (stamp := STAMP.search(text)):
            yield from self._stamp(stamp, line.number)
        elif "Training " in text and (bar := BAR.search(text)):
            yield from self._bar(bar)
        elif "WANDB_MIRROR" in text and (mirror := MIRROR.search(text)):
            yield from self._mirror(mirror, line.number)
        elif MASKED in text:
            self._warn(line.number, "every output of a batch is masked here: what is trained on it teaches nothing")
        elif any(part in text for part in FIGURES):
            self._figures(line)

    def dict_of(self, told: Metrics) -> Iterator[Block]:
        """A dict: of the step that is open, unless it names another one or repeats what the step has from a dict."""
        step, numbers = self._step, told.numbers
        if not numbers:
            return
        if all(key.startswith(EVALUATION) for key in numbers):
            yield Block(told.step, told.line, "validation", numbers)
            return
        other = told.step is not None and step.number not in (None, told.step)
        if other or (told.step is None and step.told & numbers.keys()):
            yield from self._give()
        self._step.tell(numbers, told.line)
        if told.step is not None:
            self._step.number = told.step

    def rest(self) -> Iterator[Block]:
        """What is left at the end of the log."""
        self._timers.left()
        yield from self._give()

    def _give(self) -> Iterator[Block]:
        block, self._step = self._step.block(), Step()
        if block is not None:
            self._last = self._last if block.step is None else block.step
            yield block

    def _stamp(self, stamp: re.Match[str], line: int) -> Iterator[Block]:
        """The timer `step` starts again within a step where dynamic sampling asks for another batch first."""
        what, name, seconds = stamp.groups()
        if what == "Started":
            again = name == STEP and self._step.finished and not self._step.done
            self._bar_is_step &= not again
            if name in RESTARTED or (name == STEP and not again):
                yield from self._give()
            self._last = -1 if name in RESTARTED else self._last  # a resumed run repeats steps
            self._timers.start(name, line)
            self._step.line = self._step.line or line
        elif seconds is not None:
            self._timers.finish(name)
            self._step.time(name, float(seconds), line)

    def _bar(self, bar: re.Match[str]) -> Iterator[Block]:
        """Drawn anew after each step; with dynamic sampling it counts batches, and numbers no step from then on."""
        step, at = self._step, int(bar[2])
        if not step.done:
            return
        if step.number is None and self._bar_is_step and at > self._last:
            step.number = at
        if bar[1] == "Batches Processed":  # the synchronous trainer logs before it moves the bar
            yield from self._give()

    def _figures(self, line: Line) -> None:
        for key, value, end in FIGURE.findall(line.text):
            if (number := number_of(value)) is not None and (end or not line.torn):
                self._step.values[key], self._step.began = number, True
                self._step.line = self._step.line or line.number

    def _mirror(self, found: re.Match[str], line: int) -> Iterator[Block]:
        try:
            record: Any = json.loads(found[3])
        except (ValueError, RecursionError):
            self._warn(line, "a mirrored record is broken: left out")
            return
        values = {key: number for key, raw in record.items() if (number := number_of(json.dumps(raw))) is not None}
        kind: Kind = "training" if found[1] == "train" else "validation"
        yield Block(int(found[2]), line, kind, values, "mirror")
