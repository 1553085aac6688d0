"""Data as scripts: a page that was opened from the file system may load a script, and no other data."""

import json
from typing import Any

ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""Without these no text of a framework or a model can end a script or begin a comment of HTML."""


def script(name: str, content: Any) -> str:
    """A script that hands `content` to the site's own script under `name`. Strict JSON: no infinite number."""
    return f"rlaxes.take({_json(name)}, {_json(content)});\n"


def _json(content: Any) -> str:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for character, escape in ESCAPES.items():
        text = text.replace(character, escape)
    return text
