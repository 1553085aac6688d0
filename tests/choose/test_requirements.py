"""Requirements: what reads, what is refused in which words, and that they survive being written down."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.choose.asked import NEEDS, OR, Requirement
from harness.choose.requirements import read_requirements
from harness.choose.topics import LAG, TOPICS
from harness.contract.axes import AXES
from harness.errors import UserError
from tests.choose.made import asked


def test_every_word_stands_for_values_of_its_axis() -> None:
    for name, topic in TOPICS.items():
        assert bool(topic.words) is (name != LAG)
        for word in topic.words.values():
            assert set(word.values) <= set(AXES[topic.axis].values)
            assert word.means
    assert "many_nodes" not in TOPICS["nodes"].words


def test_words_needs_and_alternatives() -> None:
    found = asked("rollout_engine: {wish: sglang, must: [vllm, dynamo or jax]}, allowed_lag: {must: 4}")
    assert [(one.topic, one.asked, one.need) for one in found.asked] == [
        ("allowed_lag", "at most 4 updates", "must"),
        ("rollout_engine", "vllm", "must"),
        ("rollout_engine", "dynamo or jax", "must"),
        ("rollout_engine", "sglang", "wish"),
    ]
    assert asked("training_backend: {must: fsdp}").asked[0].values == {"fsdp", "fsdp2"}
    assert asked("recovery: {must: rng}").asked[0].values == {"keeps_rng"}
    assert Requirement(LAG, (), "must", 1).asked == "at most 1 update"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "file has no mapping `requirements`"),
        ("requirements: [", "file is no YAML"),
        ("{requirements: {}, decison: x}", "there is no entry decison; did you mean decision?"),
        ("requirements: {}", "file asks for nothing"),
        ("requirements: {engin: {must: vllm}}", "there is no topic engin; did you mean rollout_engine?"),
        ("requirements: {rollout_engine: vllm}", "rollout_engine is no mapping from must, wish, indifferent to words"),
        ("requirements: {rollout_engine: {musst: vllm}}", "rollout_engine has no musst; did you mean must?"),
        ("requirements: {rollout_engine: {must: vlm}}", "rollout_engine has no word vlm; did you mean vllm?"),
        ("requirements: {rollout_engine: {must: vLLM}}", "rollout_engine has no word vLLM; did you mean vllm?"),
        ("requirements: {turns: {must: multi-turn}}", "turns has no word multi-turn; did you mean multi_turn?"),
        ("requirements: {nodes: {must: 3}}", "nodes has no word 3; there are one, many,"),
        (
            "requirements: {allowed_lag: {must: few}}",
            "allowed_lag is a whole number of optimizer updates from 0 on, not few",
        ),
        ("requirements: {allowed_lag: {must: -1}}", "not -1"),
        ("requirements: {allowed_lag: {must: true}}", "not True"),
        ("requirements: {nodes: {must: one, wish: one}}", "nodes asks for one as must and as wish: keep one"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        read_requirements(text, "file")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "synchrony: {must: synchronous}, allowed_lag: {must: 4}",
            "synchronous and allowed lag 4 contradict each other",
        ),
        ("synchrony: {must: asynchronous}, allowed_lag: {must: 0}", "asynchronous and allowed lag 0 contradict"),
        ("synchrony: {must: partial_rollout}, allowed_lag: {must: 0}", "asynchronous and allowed lag 0 contradict"),
        ("allowed_lag: {must: [1, 4]}", "allowed_lag must be 1 and 4: keep the smallest"),
        ("synchrony: {must: synchronous}, queue: {must: drops_old}", "synchronous and queue drops old contradict"),
        ("queue: {must: [none, bounded]}", "queue none and queue bounded contradict"),
        ("queue: {must: none}, recovery: {must: queue}", "queue none and recovery queue contradict"),
        ("nodes: {must: [one, many]}", "nodes one and nodes many contradict each other: say `one or many`"),
    ],
)
def test_what_no_framework_can_meet_together_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        asked(text)


@pytest.mark.parametrize(
    "text",
    [
        "synchrony: {must: [synchronous, asynchronous]}, allowed_lag: {must: 4}",
        "synchrony: {must: synchronous or asynchronous}, allowed_lag: {must: 4}",
        "synchrony: {wish: synchronous}, allowed_lag: {must: 4}",
        "synchrony: {must: synchronous}, allowed_lag: {must: 0}",
        "synchrony: {must: synchronous}, allowed_lag: {wish: 4}",
    ],
)
def test_what_can_be_met_together_reads(text: str) -> None:
    assert asked(text).asked


@st.composite
def _told(draw: st.DrawFn) -> dict[str, dict[str, list[str]]]:
    topics = draw(st.lists(st.sampled_from([name for name in TOPICS if name != LAG]), min_size=1, unique=True))
    told = {}
    for name in topics:
        words = draw(st.lists(st.sampled_from(list(TOPICS[name].words)), min_size=1, max_size=4, unique=True))
        told[name] = {draw(st.sampled_from(NEEDS[1:])): draw(st.sampled_from([words, [OR.join(words)]]))}
    return told


@given(_told())
@settings(max_examples=40, deadline=None)
def test_what_was_read_reads_the_same_once_written(told: dict[str, dict[str, list[str]]]) -> None:
    found = read_requirements(yaml.safe_dump({"decision": "ours: \u00e4", "requirements": told}), "file")
    assert read_requirements(found.as_yaml(), "file") == found
