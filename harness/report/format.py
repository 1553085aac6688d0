"""Numbers as a person reads them: three significant digits, one scale for a value and its interval."""

import math
from typing import Any

NOTHING = "–"
BYTE_STEPS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
SECOND_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
SHARES = ("share", "fraction", "ratio of 1")


def scale(unit: str, size: float) -> tuple[float, str]:
    """The divisor and the unit in which a figure of `size` (in `unit`) reads best."""
    if not math.isfinite(size):
        return 1.0, "" if unit in {"1", "ratio"} else unit
    if unit in {"bytes", "bytes/s"}:
        step, name = next(((s, n) for s, n in BYTE_STEPS if abs(size) >= s), (1, "B"))
        return float(step), name + unit.removeprefix("bytes")
    if unit == "s":
        return next(((s, n) for s, n in SECOND_STEPS if abs(size) >= s or size == 0), SECOND_STEPS[-1])
    if unit in SHARES:
        return 0.01, "%"
    return 1.0, "" if unit in {"1", "ratio", "count"} else unit


def number(value: float | None, digits: int = 3) -> str:
    """A number with `digits` significant digits, thousands apart; never in exponents between 1e-4 and 1e9."""
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(float(f"{value:.{digits - 1}e}"))
    if size >= 1e9 or size < 1e-4:
        digits_of, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{digits_of}e{int(exponent)}".replace("-", "−")
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:,.{places}f}".replace(",", "\u202f").replace("-", "−")
    return text.rstrip("0").rstrip(".") if "." in text and float(value).is_integer() else text


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit, e.g. `1.27 GiB`, `38.0 %`, `118 tokens/s`."""
    if value is None:
        return NOTHING
    divisor, name = scale(unit, value)
    return f"{number(value / divisor)} {name}".strip()


def interval(value: float | None, low: float | None, high: float | None, unit: str) -> str:
    """An interval in the scale of its value, without the unit, e.g. `112–124`; empty where there is none."""
    if value is None or low is None or high is None:
        return ""
    divisor, _ = scale(unit, value)
    return f"{number(low / divisor)}–{number(high / divisor)}"


def times(ratio: float | None) -> str:
    """A ratio as `1.83×`."""
    return NOTHING if ratio is None else f"{number(ratio)}×"


def duration(seconds: float) -> str:
    """A wall time in words, e.g. `8 min 12 s`."""
    whole = round(seconds)
    if whole < 60:
        return f"{number(seconds)} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def setting(value: Any) -> str:
    """A setting of a task as it would be written in a configuration."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def words(name: str) -> str:
    """A name of code as words: `weight_sync` -> `weight sync`."""
    return name.replace("_", " ")
