"""What `adapter.yaml` says of OpenRLHF stands in the installed source: each place that it names, each figure's name."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import adapters.openrlhf

FOLDER = Path(adapters.openrlhf.__file__).parent
SPEC: dict[str, Any] = yaml.safe_load((FOLDER / "adapter.yaml").read_text(encoding="utf-8"))
NAME = re.compile(r"[A-Za-z_]\w+")


def package() -> Path:
    spec = importlib.util.find_spec("openrlhf")
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or [])))


@pytest.mark.parametrize("axis", SPEC["axes"])
def test_the_source_of_an_axis_is_there(axis: str) -> None:
    for place in SPEC["axes"][axis]["source"].split("; "):
        path, _, names = place.partition(" ")
        if "of its repository" in names:
            continue  # the wheel does not hold it
        text = (package().parent / path).read_text(encoding="utf-8")
        assert all(name in text for name in NAME.findall(names)), place


@pytest.mark.parametrize("key", [said["key"] for said in SPEC["native"]])
def test_a_figure_of_its_own_is_still_called_that(key: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (package() / "trainer").rglob("*.py")]
    word = re.compile(rf"(?<![\w/]){re.escape(key)}(?!\w)")
    assert any(word.search(text) for text in texts)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("trainer/ppo_utils/experience_maker.py", "(rewards.std(-1, keepdim=True) + 1e-9)"),
        ("trainer/ppo_utils/samples_generator.py", 'min_tokens=generate_kwargs.get("min_new_tokens", 1)'),
        ("trainer/ppo_trainer.py", 'sum(v for k, v in status.items() if k.startswith("timing/"))'),
        ("trainer/ppo_trainer_async.py", "time.time() - step_start_time"),
        ("trainer/ppo_utils/replay_buffer.py", "class NaiveReplayBuffer"),
        ("trainer/ray/ppo_actor.py", "drop_last=True"),
        ("models/utils.py", "value.clamp(min=-10, max=10)"),
        ("models/loss.py", "masked_mean(rollout_log_probs - old_log_probs"),
    ],
)
def test_a_constant_or_formula_that_we_repeat_is_still_that(file: str, line: str) -> None:
    assert line in (package() / file).read_text(encoding="utf-8")
