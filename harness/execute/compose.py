"""From words on the command line to resolved configurations, by Hydra; a misspelt key is named with its nearest."""

import difflib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import conf
from harness.errors import UserError
from harness.execute.adapter import find_adapter, find_adapters, look_for_adapters, not_run
from harness.execute.drills import check_fault
from harness.execute.recipe import check_recipe
from harness.execute.version import Version

SWEPT = ("adapter", "layout", "track", "fault")
UNDISTURBED = "none"
LEAST_PAIRS = 3
"""Fewer pairs of an A/A test show no spread that could be relied on."""
CONF = Path(conf.__path__[0])
Config = dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """One combination of adapter, layout, track and fault, with its resolved configuration, in a version where that is
    another than this checkout's."""

    adapter: str
    config: Config
    version: Version | None = None

    @property
    def fault(self) -> str:
        """What is done to its cells; `UNDISTURBED` where nothing is."""
        return str(self.config["fault"]["name"])

    @property
    def system(self) -> str:
        """The adapter, and the version where there is one."""
        return f"{self.adapter}@{self.version.name}" if self.version else self.adapter

    @property
    def label(self) -> str:
        """What its cells are called: the system, and the fault where there is one."""
        return self.system if self.fault == UNDISTURBED else f"{self.system}+{self.fault}"


def _groups() -> dict[str, list[str]]:
    groups = {path.name: sorted(file.stem for file in path.glob("[!_]*.yaml")) for path in CONF.iterdir()}
    return {name: options for name, options in groups.items() if options}


def options_of(group: str) -> list[str]:
    """The options of a group of `conf/` that change something."""
    return [option for option in _groups()[group] if option != UNDISTURBED]


def _register_third_parties() -> None:
    """Adapters from entry points have no file in `conf/adapter`: their `adapter.yaml` holds their options."""
    for name, adapter in find_adapters().items():
        if not adapter.built_in:
            ConfigStore.instance().store(
                group="adapter", name=name, node={"name": name, **adapter.spec.get("options", {})}
            )


def _nearest(word: str, options: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(options)}"


def _all_keys(config: Any, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key, value in config.items():
        keys.append(f"{prefix}{key}")
        if isinstance(value, dict):
            keys += _all_keys(value, f"{prefix}{key}.")
    return keys


def _split(overrides: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The swept groups with their lists, and every other override as it is."""
    swept: dict[str, list[str]] = {}
    rest: list[str] = []
    groups = _groups()
    for word in overrides:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"'{word}' is not a setting: write key=value, e.g. repeats=3")
        if key in groups:
            _check_options(key, value.split(","), groups[key])
        if key in SWEPT:
            swept[key] = value.split(",")
        else:
            rest.append(word)
    return swept, rest


def _check_options(group: str, values: Sequence[str], options: Sequence[str]) -> None:
    running = {name for name, adapter in find_adapters().items() if adapter.runs}
    known = sorted({*options, *running}) if group == "adapter" else options
    for value in values:
        if group == "adapter" and value in find_adapters().keys() - running:
            raise UserError(not_run(find_adapter(value)))
        if group == "adapter" and value in look_for_adapters().broken:
            find_adapter(value)
        if value not in known:
            raise UserError(f"{group}={value}: there is no such {group}{_nearest(value, known)}")


def compose_choices(overrides: Sequence[str]) -> list[Choice]:
    """Every combination that the words ask for, in the order of their names.

    Raises:
        UserError: a key, a group's option, or a value is not one that rlaxes knows.
    """
    swept, rest = _split(overrides)
    lists = [sorted(set(swept.get(group, [_default(group)]))) for group in SWEPT]
    _register_third_parties()
    choices = []
    for combination in itertools.product(*lists):
        words = [f"{group}={value}" for group, value in zip(SWEPT, combination, strict=True)]
        # What is said of a fault is not said of the undisturbed cell beside it.
        alone = combination[-1] == UNDISTURBED and len(lists[-1]) > 1
        choices.append(
            Choice(combination[0], _compose([*words, *(w for w in rest if not (alone and w.startswith("fault.")))]))
        )
    return choices


def output_of(overrides: Sequence[str]) -> Path:
    """The folder for run folders that the words name, or the one of `conf/config.yaml`."""
    said = [word.partition("=")[2] for word in overrides if word.startswith("output=")]
    return Path(said[-1] if said else yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["output"])


def _default(group: str) -> str:
    defaults = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    return next(str(entry[group]) for entry in defaults if isinstance(entry, dict) and group in entry)


def _compose(words: Sequence[str]) -> Config:
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), version_base=None):
            config = compose("config", overrides=list(words))
            resolved = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_explain(error, words)) from error
    checked: Config = resolved  # type: ignore[assignment]
    validate(checked)
    return checked


def _explain(error: Exception, words: Sequence[str]) -> str:
    """Hydra's message in one line, with the nearest key where a key is wrong."""
    messages = [str(error), str(error.__cause__ or "")]
    for message in messages:
        if match := re.search(r"Could not override '([^']+)'", message):
            return f"there is no setting {match[1]}{_nearest(match[1], _known_keys(words))}"
        if match := re.search(r"Missing mandatory value: (\S+)", message):
            key = getattr(error, "full_key", None) or match[1]
            return f"{key} has no value: write {key}=..."
    return " ".join(messages[0].split())


def _known_keys(words: Sequence[str]) -> list[str]:
    """Every setting that there is under the options of the groups that the words choose."""
    chosen = [word for word in words if word.partition("=")[0] in _groups()]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base=None):
        config: DictConfig = compose("config", overrides=chosen)
    return sorted(_all_keys(OmegaConf.to_container(config, resolve=False)))


def _check_null_test(asked: Config) -> None:
    pairs, noise = asked["pairs"], asked["max_noise"]
    if pairs is not None and (not isinstance(pairs, int) or pairs < 0 or 0 < pairs < LEAST_PAIRS):
        raise UserError(f"null_test.pairs={pairs}: it has to be 0 (none), or a whole number of at least {LEAST_PAIRS}")
    if not isinstance(noise, float | int) or noise <= 0:
        raise UserError(f"null_test.max_noise={noise}: it has to be a number above 0, e.g. 0.1 for 10 %")
    if not isinstance(asked["max_foreign"], float | int) or asked["max_foreign"] < 0:
        raise UserError(f"null_test.max_foreign={asked['max_foreign']}: it has to be a number of cores, e.g. 0.25")


def validate(config: Config) -> None:
    """Refuse values that no run could honour.

    Raises:
        UserError: with the key, its value, and what it has to be.
    """
    task = config["task"]
    positive = (
        "steps",
        "prompts_per_batch",
        "group_size",
        "max_tokens",
        "minibatches",
        "micro_batches",
        "inner_epochs",
    )
    for key in positive:
        if not isinstance(task[key], int) or task[key] < 1:
            raise UserError(f"task.{key}={task[key]}: it has to be a whole number of at least 1")
    if not isinstance(config["repeats"], int) or config["repeats"] < 1:
        raise UserError(f"repeats={config['repeats']}: it has to be a whole number of at least 1")
    if not 0 <= task["warmup_steps"] < task["steps"]:
        raise UserError(f"task.warmup_steps={task['warmup_steps']}: it has to be below task.steps={task['steps']}")
    batch, parts = task["prompts_per_batch"] * task["group_size"], task["minibatches"] * task["micro_batches"]
    if batch % parts:
        raise UserError(
            f"task.minibatches x task.micro_batches = {parts} does not divide the {batch} completions of a batch "
            "(task.prompts_per_batch x task.group_size)"
        )
    if config["fault"]["name"] != UNDISTURBED and "checkpoint" not in config["adapter"]:
        name = config["adapter"]["name"]
        raise UserError(f"adapter {name} keeps no checkpoint that rlaxes can set, so no drill can resume it")
    _check_null_test(config["null_test"])
    check_fault(config["fault"])
    check_recipe(config["recipe"])
    if task["temperature"] <= 0:
        raise UserError(f"task.temperature={task['temperature']}: it has to be above 0 (a greedy policy has no ratio)")
