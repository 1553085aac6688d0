"""Markdown around untrusted text: what every page is made of."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness.report.views import visible

SPECIAL = re.compile(r"([\\`*_{}\[\]#|~!])")


def escape(text: Any) -> str:
    """Untrusted text within a table cell or a paragraph: nothing in it is markup, and it stays on one line."""
    plain = " ".join(visible(str(text)).split())
    plain = SPECIAL.sub(r"\\\1", plain)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: Any) -> str:
    """A name of code, in a cell; text with a backtick or a bar in it is escaped instead."""
    plain = " ".join(visible(str(text)).split())
    return escape(plain) if not plain or "`" in plain or "|" in plain else f"`{plain}`"


def grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """A table; its cells are Markdown already."""
    return [
        "| " + " | ".join(head) + " |",
        "|" + " --- |" * len(head),
        *("| " + " | ".join(cells) + " |" for cells in lines),
        "",
    ]
