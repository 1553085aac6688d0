"""Requirements that are asked for: a wrong word is said and asked for again, and so are contradictions."""

from collections.abc import Callable

from harness.choose.ask import ask_for_requirements
from harness.choose.topics import TOPICS

Answers = dict[str, list[str]]


def _asker(answers: Answers) -> Callable[[str], str]:
    def ask(question: str) -> str:
        waiting = answers.get(question, [])
        return waiting.pop(0) if waiting else ""

    return ask


def test_topics_are_asked_and_a_wrong_word_again() -> None:
    said: list[str] = []
    answers = {
        "What is to be decided?": ["Ours"],
        "rollout engine, must": ["vlm", "vllm, dynamo or jax"],
        "allowed lag, wish": ["4"],
    }
    found = ask_for_requirements(_asker(answers), said.append)
    assert found.decision == "Ours"
    assert [(one.asked, one.need) for one in found.asked] == [
        ("at most 4 updates", "wish"),
        ("vllm", "must"),
        ("dynamo or jax", "must"),
    ]
    assert [line for line in said if "did you mean vllm?" in line]
    assert all(any(topic.asks in line for line in said) for topic in TOPICS.values())


def test_what_contradicts_itself_is_asked_anew() -> None:
    said: list[str] = []
    answers = {"synchrony, must": ["synchronous", "asynchronous"], "allowed lag, must": ["4", "4"]}
    found = ask_for_requirements(_asker(answers), said.append)
    assert [one.asked for one in found.asked] == ["asynchronous", "at most 4 updates"]
    assert [line for line in said if "synchronous and allowed lag 4 contradict each other" in line]
