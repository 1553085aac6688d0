"""The first lines of a memory budget [12.2.1 - 12.2.3]. Sizes in bytes; none of them is a whole footprint."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from harness.errors import UserError


@dataclass(frozen=True)
class StateProfile:
    """Bytes per parameter of each stored object of the model state [12.2.1].

    `param` counts for all parameters; the rest for the trainable ones only.
    """

    param: float
    grad: float
    first_moment: float
    second_moment: float
    master: float

    @property
    def per_trained_parameter(self) -> float:
        """Bytes that one trainable parameter costs."""
        return self.param + self.grad + self.first_moment + self.second_moment + self.master


def read_profiles(path: Path) -> dict[str, StateProfile]:
    """Named profiles from a YAML table: a name, and bytes a parameter of `param`, `grad`, `first_moment`,
    `second_moment` and `master`.

    Raises:
        UserError: names the profile and the field that is wrong.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected profiles, one a line")
    return {name: _profile(str(name), given) for name, given in content.items()}


def _profile(name: str, given: Any) -> StateProfile:
    wanted = [field.name for field in fields(StateProfile)]
    if not isinstance(given, dict) or set(given) != set(wanted):
        raise UserError(f"profile {name}: give {', '.join(wanted)}, each in bytes a parameter")
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise UserError(f"profile {name}: {key}={value}: expected bytes a parameter, 0 or more")
    return StateProfile(**given)


PROFILES: dict[str, StateProfile] = read_profiles(Path(__file__).parent / "profiles.yaml")
"""Named profiles; `adamw_bf16_master` is the "sixteen bytes" of step 12.2.1. LoRA is one of them with its own N."""


def state_bytes(profile: StateProfile, parameters: int, trainable: int | None = None) -> float:
    """`B_state = N (b_param + b_grad + b_m1 + b_m2 + b_master)`; with `trainable` below N (LoRA) only those carry more
    than their own weight [12.2.1, 12.2.4]."""
    trained = parameters if trainable is None else trainable
    return parameters * profile.param + trained * (profile.per_trained_parameter - profile.param)


def rank_bytes(state: float, ranks: int) -> float:
    """`B_rank ~ B_state / D`: an order of magnitude, no peak [12.2.2]."""
    return state / ranks


def kv_bytes(layers: int, kv_heads: int, head_dim: int, tokens: int, bytes_per_element: float) -> float:
    """`B_KV = 2 L H_kv d_h N_tok b`: keys and values of all retained tokens [12.2.3]."""
    return 2 * layers * kv_heads * head_dim * tokens * bytes_per_element
