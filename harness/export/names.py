"""Names that all tools take."""

import re

UNNAMEABLE = re.compile(r"[^A-Za-z0-9_.-]+")


def spelt(text: str) -> str:
    """A text as a part of a name: letters, digits and `_.-`; MLflow takes no bracket, a file system no slash."""
    return UNNAMEABLE.sub("_", text)
