"""Asks for requirements in the terminal, topic by topic; a wrong word is said and asked for again."""

from collections.abc import Callable
from typing import Any

from harness.choose.asked import NEEDS, Requirements
from harness.choose.requirements import requirements_of
from harness.choose.topics import LAG, TOPICS, Topic
from harness.errors import UserError

Ask = Callable[[str], str]
"""Shows a question and gives what was typed."""
Say = Callable[[str], None]
ASKED_FOR = NEEDS[:2]
"""What nobody cares about needs no question."""


def ask_for_requirements(ask: Ask, say: Say) -> Requirements:
    """All topics once, and again from the first where what was said contradicts itself or asks for nothing.

    Args:
        ask: puts one question; an empty answer asks for nothing.
        say: prints a line.
    """
    say("Words, apart by commas; `a or b` where either will do; empty where nothing is asked.")
    decision = ask("What is to be decided?").strip()
    while True:
        told = {name: said for name, topic in TOPICS.items() if (said := _topic(name, topic, ask, say))}
        try:
            return requirements_of(told, decision, "what was asked")
        except UserError as error:
            say(str(error))


def _topic(name: str, topic: Topic, ask: Ask, say: Say) -> dict[str, list[Any]]:
    say(f"\n{topic.title}: {topic.asks}")
    for word, means in topic.words.items():
        say(f"  {word}: {means.means}")
    while True:
        answers = {need: _items(name, ask(f"{topic.title}, {need}")) for need in ASKED_FOR}
        told = {need: items for need, items in answers.items() if items}
        try:
            if told:
                requirements_of({name: told}, "", "what was asked")
        except UserError as error:
            say(str(error))
            continue
        return told


def _items(name: str, typed: str) -> list[Any]:
    words = [word.strip() for word in typed.split(",") if word.strip()]
    return [int(word) if word.isdecimal() else word for word in words] if name == LAG else words
