"""The `reasoning_gym` task: any dataset of that package by name, scored by the dataset's own rule.

The package is imported when a problem is made or scored, never by the harness or a framework's main process.
"""

import importlib
import importlib.util
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from harness.errors import PrerequisiteError, UserError
from harness.task.problem import Canary, Problem, Score, Scorer, Split, nearest, read_settings

_ANSWER = re.compile(r"<answer>\s?(.*?)\s?</answer>", re.DOTALL)
# Some datasets pay a little for any answer at all; above this a wrong answer cannot be told from a right one.
_WRONG_LIMIT = 0.25


@dataclass(frozen=True)
class GymSettings:
    """`dataset` is its registered name, `config` its own parameters; `suffix` is added to each question."""

    dataset: str = "chain_sum"
    count: int = 256
    seed: int = 0
    config: dict[str, Any] = field(default_factory=dict)
    suffix: str = ""


def _settings(values: Mapping[str, Any]) -> GymSettings:
    return read_settings(GymSettings, values, "task.problems")


def _package() -> Any:
    """The package's registry module. Raises PrerequisiteError where it is not installed."""
    _stand_in_for_pycosat()
    try:
        return importlib.import_module("reasoning_gym.factory")
    except ModuleNotFoundError as error:
        raise PrerequisiteError(
            f"task reasoning_gym needs the package {error.name} in this environment: pip install reasoning-gym"
        ) from error


def _stand_in_for_pycosat() -> None:
    """The package imports pycosat for its zebra puzzles alone, and pycosat is published as source only: the locks leave
    it out, so that no C compiler is needed, and only a use of it fails."""
    if "pycosat" not in sys.modules and importlib.util.find_spec("pycosat") is None:
        stand_in = types.ModuleType("pycosat")
        stand_in.__getattr__ = _no_pycosat  # type: ignore[method-assign]
        sys.modules["pycosat"] = stand_in


def _no_pycosat(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise PrerequisiteError("zebra puzzles need pycosat and a C compiler in this environment: pip install pycosat")


def _dataset(settings: GymSettings, split: Split, size: int) -> Any:
    package = _package()
    if settings.dataset not in package.DATASETS:
        near = nearest(settings.dataset, package.DATASETS)
        raise UserError(f"reasoning-gym has no dataset {settings.dataset!r}; did you mean {near!r}?")
    seed = 2 * settings.seed + (split == "fit")
    try:
        return package.create_dataset(settings.dataset, size=size, seed=seed, **settings.config)
    except (TypeError, ValueError, AssertionError) as error:
        raise UserError(f"task.problems.config does not suit reasoning-gym's {settings.dataset}: {error}") from error


def pack(value: Any) -> Any:
    """`value` as JSON that `unpack` restores; plain JSON makes lists of tuples, and some datasets then score wrong."""
    if isinstance(value, tuple):
        return {"tuple": [pack(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(key), pack(item)] for key, item in value.items()]}
    return [pack(item) for item in value] if isinstance(value, list) else value


def unpack(value: Any) -> Any:
    """The inverse of `pack`."""
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(unpack(item) for item in value["tuple"])
        return {unpack(key): unpack(item) for key, item in value["dict"]}
    return [unpack(item) for item in value] if isinstance(value, list) else value


def read_answer(text: str) -> str:
    """What stands in the last `<answer>` tag, or the whole text without surrounding space where there is none."""
    tagged = _ANSWER.findall(text)
    return str(tagged[-1]).strip() if tagged else text.strip()


class ReasoningGym:
    """See `harness.task.problem.TaskKind`."""

    turns = 1

    def problems(self, settings: Mapping[str, Any], split: Split, count: int) -> list[Problem]:
        """The dataset's first `count` entries; `fit` draws from another seed."""
        chosen = _settings(settings)
        made = []
        for index, entry in enumerate(_dataset(chosen, split, count)):
            if entry["answer"] is None:
                raise UserError(f"reasoning-gym's {chosen.dataset} stores no right answer to check its verifier with")
            messages = [{"role": "user", "content": entry["question"] + chosen.suffix}]
            meta = {"entry": pack(dict(entry))}
            made.append(Problem(f"{chosen.dataset}-{index:05d}", messages, str(entry["answer"]), meta))
        return made

    def version(self, settings: Mapping[str, Any]) -> str:
        """The package's version and the dataset."""
        _package()
        return f"reasoning-gym-{metadata.version('reasoning-gym')}/{_settings(settings).dataset}"

    def scorer(self, settings: Mapping[str, Any]) -> Scorer:
        """`correctness`: the dataset's own score in 0..1, which may be partial."""
        rule = _package().get_score_answer_fn(_settings(settings).dataset)

        def score(problem: Problem, text: str) -> Score:
            total = float(rule(read_answer(text), unpack(problem.meta["entry"])))
            return Score(total, {"correctness": total})

        return score

    def canary(self, settings: Mapping[str, Any], problems: list[Problem]) -> Canary:
        """The first problem's answer, and of its words, no words and other problems' answers the one that scores least.

        Raises UserError where the dataset's rule does not tell right from wrong.
        """
        score, first = self.scorer(settings), problems[0]
        others = [problem.answer for problem in problems[1:20] if problem.answer != first.answer]
        scored = []
        for text in ["no answer", "", *others]:
            try:
                scored.append((score(first, text).total, text))
            except Exception:  # noqa: BLE001, S112 - a rule that raises on nonsense is no use as a canary, the next may be
                continue
        least, wrong = min(scored, default=(1.0, ""))
        if score(first, first.answer).total != 1.0 or least > _WRONG_LIMIT:
            name = _settings(settings).dataset
            raise UserError(f"reasoning-gym's {name} does not score its own right answer 1 and a wrong one near 0")
        return Canary(first.prompt_id, first.answer, wrong, wrong_at_most=least)
