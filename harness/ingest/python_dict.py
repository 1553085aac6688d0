"""Python's own writing of a dict (`{'loss': 0.5, 'kl': np.float64(nan)}`), read without running any of it.

Frameworks print metrics so: on one line or on several, with numbers as text, with `nan`, with what NumPy and PyTorch
print, and cut off anywhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\[({]|[\])}]|[,:]|[^'"\[\](){},:]+|.""", re.DOTALL)
NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)
WRAPPED = re.compile(r"(?:np\.\w+|numpy\.\w+|tensor|torch\.tensor|array)\(\s*([^,()\[\]]+?)\s*(?:,[^()]*)?\)")
"""`np.float64(0.5)`, `tensor(0.5, device='cuda:0')`: one number in a wrapping."""
LONGEST_NUMBER = 200
WORDS = {"True": 1.0, "False": 0.0}


@dataclass
class Written:
    """What a dict says.

    Attributes:
        numbers: by key; True and False as 1 and 0, a number in quotes as a number.
        other: what is no number, as written.
        whole: whether its closing bracket is there; else its last item was left out, since it may go on.
        end: where the text goes on after it.
    """

    numbers: dict[str, float] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    end: int = 0


def read_dict(text: str, start: int = 0) -> Written:
    """The dict that begins with the bracket at `start`. An item that is no `'key': value` is passed over."""
    done = Written(end=len(text))
    for key, raw, end in _items(text, start):
        if end is not None:
            done.whole, done.end = True, end
        if not key:
            continue
        number = number_of(raw)
        if number is None:
            done.other[key] = raw
        else:
            done.numbers[key] = number
    return done


def number_of(raw: str) -> float | None:
    """The number that a value is; None for what is none. Nothing that only begins with a number is one."""
    if len(raw) > LONGEST_NUMBER:
        return None
    text = _unquoted(raw).strip()
    if text in WORDS:
        return WORDS[text]
    if wrapped := WRAPPED.fullmatch(text):
        text = wrapped[1]
    return float(text) if NUMBER.fullmatch(text) else None


def _unquoted(raw: str) -> str:
    text = raw.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _items(text: str, start: int) -> Iterator[tuple[str, str, int | None]]:
    """Key, value and, with the last item of a dict that is whole, where it ends; an item that is cut off is not among
    them."""
    depth, key, at = 0, "", start
    for token in TOKEN.finditer(text, start):
        sign = token[0]
        if sign in "([{":
            depth += 1
            if depth == 1:
                at = token.end()
        elif sign in ")]}":
            depth -= 1
            if depth <= 0:
                yield key, text[at : token.start()], token.end()
                return
        elif depth != 1:
            continue
        elif sign == ":" and not key:
            key, at = _unquoted(text[at : token.start()]), token.end()
        elif sign == ",":
            yield key, text[at : token.start()], None
            key, at = "", token.end()
