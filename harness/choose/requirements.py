"""A team's requirements: read from YAML, or refused in one line that says how to mend them."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from harness.choose.asked import NEEDS, OR, Requirement, Requirements
from harness.choose.conflicts import conflict_in
from harness.choose.topics import LAG, TOPICS, Topic
from harness.errors import UserError

KEYS = ("decision", "requirements")
MOST_LAG = 10_000


def read_requirements(text: str, where: str) -> Requirements:
    """The requirements of a YAML text; `where` names it in a complaint.

    Raises:
        UserError: it is no such YAML, a word is unknown (with the nearest that is known), or two requirements conflict.
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{where} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, Mapping) or not isinstance(content.get("requirements"), Mapping):
        raise UserError(f"{where} has no mapping `requirements`; `rlaxes choose --example` prints a file to begin with")
    for key in content:
        if key not in KEYS:
            raise UserError(f"{where}: there is no entry {key}{nearest(str(key), KEYS)}")
    return requirements_of(content["requirements"], str(content.get("decision") or ""), where)


def requirements_of(told: Mapping[str, Any], decision: str, where: str) -> Requirements:
    """The requirements of a mapping from topic to need to words.

    Raises:
        UserError: as of `read_requirements`.
    """
    for topic in told:
        if topic not in TOPICS:
            raise UserError(f"{where}: there is no topic {topic}{nearest(str(topic), list(TOPICS))}")
    asked = tuple(one for topic in TOPICS if topic in told for one in _of_topic(topic, told[topic], where))
    if not asked:
        raise UserError(f"{where} asks for nothing; `rlaxes choose --example` prints a file to begin with")
    found = Requirements(decision.strip(), asked)
    if complaint := conflict_in(found):
        raise UserError(f"{where}: {complaint}")
    return found


def _of_topic(topic: str, said: Any, where: str) -> Iterator[Requirement]:
    if not isinstance(said, Mapping):
        raise UserError(f"{where}: {topic} is no mapping from {', '.join(NEEDS)} to words")
    for need in said:
        if need not in NEEDS:
            raise UserError(f"{where}: {topic} has no {need}{nearest(str(need), NEEDS)}")
    met: dict[Any, str] = {}
    for need in (need for need in NEEDS if need in said):
        items = said[need] if isinstance(said[need], list) else [said[need]]
        for item in (item for item in items if item is not None):
            requirement = _requirement(topic, item, need, where)
            if requirement.asked in met:
                raise UserError(f"{where}: {topic} asks for {item} as {met[requirement.asked]} and as {need}: keep one")
            met[requirement.asked] = need
            yield requirement


def _requirement(topic: str, item: Any, need: str, where: str) -> Requirement:
    if topic == LAG:
        if not isinstance(item, int) or isinstance(item, bool) or not 0 <= item <= MOST_LAG:
            raise UserError(f"{where}: {LAG} is a whole number of optimizer updates from 0 on, not {item}")
        return Requirement(topic, (), need, item)
    words = tuple(dict.fromkeys(word.strip() for word in str(item).split(OR)))
    for word in words:
        if word not in TOPICS[topic].words:
            raise UserError(f"{where}: {topic} has no word {word}{_nearest_word(word, TOPICS[topic])}")
    return Requirement(topic, words, need)


def _nearest_word(word: str, topic: Topic) -> str:
    return nearest(word, list(topic.words))


def nearest(word: str, known: Sequence[str]) -> str:
    """The end of a complaint about a word: the nearest that is known, or all."""
    folded = word.strip().lower().replace("-", "_").replace(" ", "_")
    close = difflib.get_close_matches(folded, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
