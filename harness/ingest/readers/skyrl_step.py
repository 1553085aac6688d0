"""What a console log of SkyRL tells of one step, piece by piece, and which of its timers still run."""

from dataclasses import dataclass, field

from harness.ingest.reading import Block, Warn

STEP = "step"
IN_STEP = frozenset(
    {"generate", "convert_to_training_input", "fwd_logprobs_values_reward", "compute_advantages_and_returns"}
    | {"train_critic_and_policy", "policy_train", "critic_train", "wait_for_generation_buffer", "run_training"}
)
"""Timers that run within a step alone; the others (`sync_weights`, `eval`, `save_checkpoints`) run outside too."""
TRAINED = frozenset({"train_critic_and_policy", "run_training"})
ASYNC = frozenset({"wait_for_generation_buffer", "run_training"})
MOST_OPEN, MOST_KEYS = 1000, 10_000


@dataclass
class Step:
    """One step so far; or what is timed before the first one and between two.

    Attributes:
        number: as the log gives it; None where it does not.
        line: where it begins.
        values: by key; timers under `timing/`, as SkyRL's own trackers have them, and added up as there.
        told: the keys that a dict gave.
        began: something in it belongs to a step and to nothing else.
        finished: its timer `step` is over; with dynamic sampling that happens several times a step.
        done: it has trained.
    """

    number: int | None = None
    line: int = 0
    values: dict[str, float] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    began: bool = False
    finished: bool = False
    done: bool = False
    asynchronous: bool = False

    def time(self, name: str, seconds: float, line: int) -> None:
        """A timer that is over."""
        self.line = self.line or line
        key = f"timing/{name}"
        if key in self.values or len(self.values) < MOST_KEYS:
            self.values[key] = self.values.get(key, 0.0) + seconds
        self.began |= name in IN_STEP or name == STEP
        self.asynchronous |= name in ASYNC
        self.done |= name in TRAINED
        if name == STEP:
            self.finished = True

    def tell(self, numbers: dict[str, float], line: int) -> None:
        """A dict of the step: what it says goes before what the stamps said of the same, since it has more digits."""
        self.line = self.line or line
        self.values |= numbers
        self.told |= numbers.keys()
        self.began = self.done = True
        self.asynchronous |= any(key.startswith("async/") for key in numbers)
        at = numbers.get("trainer/global_step")
        if at is not None and at == at // 1:
            self.number = int(at)

    def block(self) -> Block | None:
        """It as a block; None where nothing was told. A mode is said where it shows."""
        if not self.values:
            return None
        if not self.began:
            return Block(None, self.line, "summary", self.values, "outside of steps")
        mode = "async" if self.asynchronous else "sync" if "timing/generate" in self.values else None
        return Block(self.number, self.line, "training", self.values, words={"mode": mode} if mode else {})


class Open:
    """Timers that were started and are not over yet."""

    def __init__(self, warn: Warn) -> None:
        self._warn, self._names = warn, list[tuple[str, int]]()

    def start(self, name: str, line: int) -> None:
        """A timer starts. A step while another one runs: the process of that one died."""
        if name == STEP and any(running == STEP for running, _ in self._names):
            self.left()
        self._names.append((name, line))
        del self._names[:-MOST_OPEN]

    def finish(self, name: str) -> None:
        """A timer is over; where its start is not in the log nothing is said."""
        for at in range(len(self._names) - 1, -1, -1):
            if self._names[at][0] == name:
                del self._names[at]
                return

    def left(self) -> None:
        """Those that are not over where the log ends, or where a process began anew: one warning, for the innermost."""
        if self._names:
            name, line = self._names[-1]
            within = "".join(f", within {other!r} of line {at}" for other, at in reversed(self._names[:-1][-3:]))
            self._warn(line, f"{name!r} was started here and is never over{within}: hung, killed, or the log was cut")
        self._names.clear()
