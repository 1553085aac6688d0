"""A completion of several turns as text: what the policy said, turn by turn, and nothing that the environment said.

The turns stand between marks that no turn can hold, so a policy that writes the environment's words itself gains
nothing: they stay a part of its own turn. Standard library only.
"""

from collections.abc import Sequence
from itertools import chain, zip_longest

# The control character "record separator".
TURN_MARK = "\x1e"


def join_turns(turns: Sequence[str]) -> str:
    """One text from the turns' texts, each rid of the mark; a single turn is its own text."""
    return TURN_MARK.join(turn.replace(TURN_MARK, "") for turn in turns)


def split_turns(text: str) -> list[str]:
    """The turns that `join_turns` joined."""
    return text.split(TURN_MARK)


def transcript(text: str, observations: Sequence[str]) -> str:
    """What `text` became of in its conversation: its turns with what the environment said between them."""
    turns = split_turns(text)
    return "".join(chain.from_iterable(zip_longest(turns, observations[: len(turns) - 1], fillvalue="")))
