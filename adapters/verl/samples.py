"""The names of samples, from the fields that ride through verl's TransferQueue with each completion."""

from typing import Any

ROUND = "rlaxes_round"
"""The field that says in which generated batch a prompt was handed out, from 0."""
VERSION, PUBLISHED = "rlaxes_version", "rlaxes_published"
"""The fields that say what weights the engine had when a prompt was handed out: optimizer steps, publications."""
SEEN = "rlaxes_engine"
"""The key of an answer's `extra_fields` where the engine's server says when it was at work on it."""


def plain(field: Any) -> list[Any]:
    """A field of a TensorDict as a list, one item a row: strings and dictionaries come wrapped, in several ways."""
    if getattr(field, "is_nested", False):
        return [row.tolist() for row in field.unbind()]
    if hasattr(field, "tolist"):
        values = field.tolist()
        return values if isinstance(values, list) else [values]
    return [getattr(item, "data", item) for item in field]


def sample_ids(data: Any) -> list[str]:
    """`<prompt_id>.b<batch>.g<place in its group>` of each row."""
    return [
        sample_id(extra["prompt_id"], number, place)
        for extra, number, place in zip(
            plain(data["extra_info"]), plain(data[ROUND]), plain(data["session_id"]), strict=True
        )
    ]


def sample_id(prompt_id: str, number: int, place: int) -> str:
    """The name of one completion."""
    return f"{prompt_id}.b{number}.g{place}"
