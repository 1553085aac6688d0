"""Named distributions of lengths and durations, drawn in blocks so that a draw costs a list's `pop`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from harness.errors import UserError
from harness.simulate.measured import read_measured
from harness.simulate.reading import nearest, number

Floats: TypeAlias = npt.NDArray[np.float64]
Generator: TypeAlias = np.random.Generator
BLOCK = 4096

_SAMPLERS: dict[str, tuple[tuple[str, ...], Callable[..., Floats]]] = {
    "constant": (("value",), lambda _, n, value: np.full(n, value)),
    "uniform": (("low", "high"), lambda rng, n, low, high: rng.uniform(low, high, n)),
    "exponential": (("mean",), lambda rng, n, mean: rng.exponential(mean, n)),
    "gamma": (("mean", "shape"), lambda rng, n, mean, shape: rng.gamma(shape, mean / shape, n)),
    "lognormal": (
        ("mean", "sigma"),
        lambda rng, n, mean, sigma: rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, n),
    ),
    "pareto": (("least", "tail"), lambda rng, n, least, tail: least * (1 + rng.pareto(tail, n))),
}
"""By name: parameters, and how to draw n. `sigma` is the standard deviation of the logarithm; `tail` the exponent of
the Pareto tail, the heavier the smaller."""
BOUNDS = ("at_least", "at_most")
MEASURED = "measured"
MEAN_DRAWS = 200_000


@dataclass(frozen=True)
class Distribution:
    """A named distribution, cut at `at_least` and `at_most` where they are given; or the `values` that were measured,
    drawn with replacement."""

    name: str
    parameters: dict[str, float]
    at_least: float | None = None
    at_most: float | None = None
    values: Floats | None = field(default=None, compare=False)

    @classmethod
    def read(cls, given: Any, where: str) -> Self:
        """From settings: a number is a constant; `{name: lognormal, mean: 160, sigma: 0.8, at_most: 1024}`;
        `{name: measured, ...}`, see `harness.simulate.measured`.

        Raises:
            UserError: names the setting that is wrong.
        """
        if isinstance(given, int | float | str) and not isinstance(given, bool):
            return cls("constant", {"value": number(given, where)})
        if not isinstance(given, Mapping) or "name" not in given:
            raise UserError(f"{where}={given}: expected a number or a distribution with its name")
        name = str(given["name"])
        if name == MEASURED:
            return cls(name, {}, values=read_measured(given, where))
        if name not in _SAMPLERS:
            raise UserError(f"{where}.name={name}: no such distribution{nearest(name, [*_SAMPLERS, MEASURED])}")
        wanted = _SAMPLERS[name][0]
        for key in given:
            if key not in {"name", *wanted, *BOUNDS}:
                raise UserError(f"there is no setting {where}.{key}{nearest(str(key), [*wanted, *BOUNDS])}")
        if missing := [key for key in wanted if given.get(key) is None]:
            raise UserError(f"{where}.{missing[0]} is not given: {name} needs {', '.join(wanted)}")
        parameters = {key: number(given[key], f"{where}.{key}") for key in wanted}
        for key in ("mean", "shape", "least", "tail"):
            if parameters.get(key) == 0:
                raise UserError(f"{where}.{key}=0: it must be above 0")
        if name == "uniform" and parameters["low"] > parameters["high"]:
            raise UserError(f"{where}.low={parameters['low']:g}: it is above high={parameters['high']:g}")
        low, high = (None if given.get(b) is None else number(given[b], f"{where}.{b}") for b in BOUNDS)
        return cls(name, parameters, low, high)

    def sample(self, rng: Generator, count: int) -> Floats:
        """[count] draws."""
        if self.values is not None:
            drawn: Floats = rng.choice(self.values, count)
            return drawn
        drawn = _SAMPLERS[self.name][1](rng, count, **self.parameters)
        return drawn if self.at_least is None and self.at_most is None else np.clip(drawn, self.at_least, self.at_most)

    @cached_property
    def mean(self) -> float:
        """Of what is drawn, cuts included; exact where nothing is cut and the mean exists, else from many draws."""
        if self.values is not None:
            return float(self.values.mean())
        if self.name == "constant":
            return float(self.sample(np.random.default_rng(0), 1)[0])
        return float(self.sample(np.random.default_rng(0), MEAN_DRAWS).mean())

    def __str__(self) -> str:
        if self.values is not None:
            return f"measured, {len(self.values)} values"
        bounds = {key: value for key in BOUNDS if (value := getattr(self, key)) is not None}
        return f"{self.name} ({', '.join(f'{key} {value:g}' for key, value in (self.parameters | bounds).items())})"


class Draws:
    """Draws of one distribution, one at a time, in an order that follows from the generator alone."""

    def __init__(self, distribution: Distribution, rng: Generator, *, whole: bool = False) -> None:
        """With `whole`, draws are rounded up to integers of at least 1."""
        self._distribution, self._rng, self._whole = distribution, rng, whole
        self._left: list[Any] = []

    def next(self) -> Any:
        """The next draw."""
        if not self._left:
            block = self._distribution.sample(self._rng, BLOCK)
            self._left = (np.maximum(np.ceil(block), 1).astype(np.int64) if self._whole else block).tolist()
        return self._left.pop()
