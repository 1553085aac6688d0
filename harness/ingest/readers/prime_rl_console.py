"""PRIME-RL's console: `Step 13 | Time: 7.47s | Reward: 0.7307 | ...`, a line a step of each of its processes
(src/prime_rl/orchestrator/orchestrator.py, trainer/rl/train.py, trainer/sft/train.py).

Trainer and orchestrator print the same step number on clocks of their own, and may share a file: the process, told by
its fields, is the block's scope and begins its keys (`trainer/Throughput`, `orchestrator/Throughput`).
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from harness.ingest.clean import COLOUR, Line, lines
from harness.ingest.reading import Block, Kind, Recognised, Warn
from harness.ingest.told import Told

NUMBER = r"[-+]?(?:\d{1,99}(?:\.\d{0,99})?(?:e[-+]?\d{1,2})?|nan|inf)"
"""What never becomes an infinity that nobody wrote."""
LONGEST_FIELD = 200
MOST_KEYS = 10_000
LEVEL = r"(?:^[\s`']*|SUCCESS +|\"message\": ?\")(?:\[[^\]]*\] )?"
"""Before a message: the start of a bare line, loguru's level, its JSON. `Micro Step` follows another level."""
HEAD = re.compile(
    LEVEL + r"(?:Step (?P<step>\d{1,15})|Validation \| Step (?P<checked>\d{1,15})"
    r"|Evaluated (?P<env>\S{1,200}) \(Step (?P<at>\d{1,15})\)) \| "
)
ENDS = re.compile(r"', '|\", \"")
"""Where a message ends that stands in a list or in JSON."""
CALLER = re.compile(r" \[[\w./]{1,200}::\d{1,9}\]\s*$")
"""What the level `debug` puts behind every message."""
SHARE_OF_ENV = re.compile(r"\s*╰─ (?P<env>\S+)\s+\| ")
FIELD = re.compile(
    rf"\s*(?P<label>[A-Z][A-Za-z. -]*?):? (?:v(?=\d))?(?P<value>{NUMBER})(?:/(?P<of>{NUMBER}))?"
    r"(?:s|%| tokens/s| tokens/sample| GiB| GB)?(?: \([\d.]+%\))?[\s`']*$"
)
DURATION = re.compile(r"\s*(?=\d)(?:(\d{1,9})d)? ?(?:(\d{1,9})h)? ?(?:(\d{1,9})m)? ?(?:([\d.]{1,20})(s|ms))?\s*$")
PARTS_S = (86400.0, 3600.0, 60.0)
ORCHESTRATOR = frozenset({"Reward", "Seq. Length", "Async Level", "Trainable", "Turns"})
TRAINER = frozenset({"Loss", "Entropy", "Grad. Norm", "LR", "MFU"})
STEP_SIGN = re.compile(
    r"Step \d{1,15} \| {1,8}(?:Time: ?)?[\d.]{1,20}(?:s|ms|m|h|d)[ \dsmh]{0,12} \| (?:Reward|Loss):? "
)
LOOP_SIGNS = (b"Starting orchestrator step", b"prime_rl/", b"RL trainer finished!")


class PrimeRlConsole:
    """Every step line of PRIME-RL's processes, 2025-07 to 0.8.0, with and without colons."""

    framework, shape = "prime_rl", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By a step line with the field that follows the time; in a run that died before one, by its loop."""
        if found := STEP_SIGN.search(COLOUR.sub("", head.decode("utf-8", "replace"))):
            return Recognised(self.framework, self.shape, None, found[0])
        for sign in LOOP_SIGNS:
            if sign in head:
                return Recognised(self.framework, self.shape, None, sign.decode())
        return None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a step and process; the lines of its environments, which follow it, are in it."""
        whole: Block | None = None
        told = Told(warn)
        for line in lines(stream, warn):
            if " | " not in line.text:
                continue
            if whole and len(whole.values) < MOST_KEYS and (found := SHARE_OF_ENV.match(line.text)):
                prefix = f"{whole.scope}/{found['env']}/"
                whole.values.update(_named(prefix, _fields(line.text[found.end() :], line, told)))
                continue
            for block in _of_line(line, told):
                if whole:
                    yield whole
                whole = block
        if whole:
            yield whole
        told.end()


def _of_line(line: Line, warn: Warn) -> Iterator[Block]:
    """The blocks of a line: mostly one, several where a paste holds a list of messages in one line."""
    heads = list(HEAD.finditer(line.text))
    for place, head in enumerate(heads):
        last = head is heads[-1]
        body, *others = ENDS.split(line.text[head.end() : None if last else heads[place + 1].start()], maxsplit=1)
        torn = line.torn and last and not others
        values = _fields(CALLER.sub("", body), line._replace(torn=torn), warn)
        if block := _block(head, values, line.number):
            yield block
        elif values:
            warn(line.number, f"step {head['step']}: neither the trainer's nor the orchestrator's fields: left out")


def _block(head: re.Match[str], values: dict[str, float], number: int) -> Block | None:
    kind: Kind = "training" if head["step"] else "validation"
    step = int(head["step"] or head["checked"] or head["at"])
    if head["env"]:
        scope, prefix = f"eval {head['env']}", f"eval/{head['env']}/"
    elif head["checked"]:
        scope, prefix = "trainer", "validation/"
    else:
        labels = {key.removesuffix(" of") for key in values}
        scope = "orchestrator" if labels & ORCHESTRATOR else "trainer" if labels & TRAINER else ""
        prefix = f"{scope}/"
    return Block(step, number, kind, _named(prefix, values), scope) if scope and values else None


def _named(prefix: str, values: dict[str, float]) -> dict[str, float]:
    return {prefix + label: value for label, value in values.items()}


def _fields(body: str, line: Line, warn: Warn) -> dict[str, float]:
    """The fields between the bars; of `5.2/23.7` the second number is the label's with ` of`, a share of both is not
    kept. The time of an orchestrator's first batch is printed as 0 since 0.5, for lack of a batch before it: left out.
    """
    parts = body.split(" | ")
    if line.torn:
        warn(line.number, "the file ends within this line: its last field was left out")
        parts.pop()
    values: dict[str, float] = {}
    for part in parts:
        found = FIELD.match(part) if len(part) <= LONGEST_FIELD else None
        if found:
            values[found["label"]] = float(found["value"])
            if found["of"]:
                values[f"{found['label']} of"] = float(found["of"])
        elif (seconds := _duration(part[:LONGEST_FIELD])) is not None:
            if seconds:
                values["Time"] = seconds
        elif part.strip(" |\t\r"):
            warn(line.number, f"{part.strip()[:60]!r} has no number that can be read: left out")
    return values


def _duration(part: str) -> float | None:
    """Seconds of `58ms`, `7.47s`, `2m 14s`, `1h 3m`, `2d 5h`: from a minute on whole seconds, from an hour minutes."""
    found = DURATION.match(part)
    if found is None or not any(found.groups()):
        return None
    *wholes, last, unit = found.groups()
    total = sum(float(count) * size for count, size in zip(wholes, PARTS_S, strict=True) if count)
    try:
        return total + (float(last) * (1e-3 if unit == "ms" else 1.0) if last else 0.0)
    except ValueError:
        return None
