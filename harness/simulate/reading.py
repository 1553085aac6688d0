"""From a mapping of settings to frozen dataclasses; whatever does not fit is refused by its full name, in one line."""

import difflib
import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from harness.errors import UserError

T = TypeVar("T")


def build(kind: type[T], given: Any, where: str = "") -> T:
    """`given` as a `kind`, a dataclass whose every field has to be there.

    No number of the settings may be negative, infinite or NaN. A dataclass may narrow that with class attributes:
    `POSITIVE` (names that must be above 0), `SHARES` (at most 1), `CHOICES` (name to its lawful values). A dataclass
    with a class method `read(given, where)` reads itself.

    Raises:
        UserError: names the setting, what it is and what it has to be.
    """
    if hasattr(kind, "read"):
        read: T = kind.read(given, where)  # type: ignore[attr-defined]
        return read
    if not isinstance(given, Mapping):
        raise UserError(f"{where or 'the settings'}={given!r}: expected a group of settings")
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in given:
        if key not in names:
            raise UserError(f"there is no setting {_path(where, str(key))}{nearest(str(key), names)}")
    if missing := [name for name in names if name not in given]:
        raise UserError(f"{_path(where, missing[0])} is not given")
    values = {name: _value(hints[name], given[name], _path(where, name)) for name in names}
    _narrow(kind, values, where)
    return kind(**values)


def nearest(word: str, options: list[str]) -> str:
    """What a misspelt word may have meant, as the end of a sentence."""
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(options)}"


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _value(hint: Any, given: Any, where: str) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        if given is None:
            return None
        (hint,) = [part for part in get_args(hint) if part is not types.NoneType]
    if is_dataclass(hint) or hasattr(hint, "read"):
        return build(hint, given, where)
    if given is None:
        raise UserError(f"{where}=null: it has to be given")
    if hint is bool or hint is str:
        if not isinstance(given, hint):
            raise UserError(f"{where}={given}: expected {'true or false' if hint is bool else 'a word'}")
        return given
    return number(given, where, whole=hint is int)


def number(given: Any, where: str, *, whole: bool = False) -> Any:
    """A finite number that is not negative; whole where asked for. A text that Python reads as a number is one: YAML
    takes `1e-4` for a text.

    Raises:
        UserError: it is none.
    """
    if isinstance(given, str):
        given = _number_of(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise UserError(f"{where}={given}: expected a number")
    if not math.isfinite(given):
        raise UserError(f"{where}={given}: it has to be finite")
    if given < 0:
        raise UserError(f"{where}={given}: it must not be negative")
    if whole and given != int(given):
        raise UserError(f"{where}={given}: expected a whole number")
    return int(given) if whole else float(given)


def _number_of(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _narrow(kind: type[Any], values: Mapping[str, Any], where: str) -> None:
    for name in getattr(kind, "POSITIVE", ()):
        if values[name] is not None and values[name] <= 0:
            raise UserError(f"{_path(where, name)}={values[name]}: it must be above 0")
    for name in getattr(kind, "SHARES", ()):
        if values[name] is not None and values[name] > 1:
            raise UserError(f"{_path(where, name)}={values[name]}: a share is at most 1")
    for name, choices in getattr(kind, "CHOICES", {}).items():
        if values[name] not in choices:
            raise UserError(f"{_path(where, name)}={values[name]}: it has to be one of {', '.join(choices)}")
