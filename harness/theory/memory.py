"""The first lines of a memory budget [12.2.1 - 12.2.3]. Sizes in bytes; none of them is a whole footprint."""

from dataclasses import dataclass


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


PROFILES: dict[str, StateProfile] = {
    "adamw_float32": StateProfile(4, 4, 4, 4, 0),
    "adamw_bf16_master": StateProfile(2, 2, 4, 4, 4),
    "adamw_bf16_no_master": StateProfile(2, 2, 4, 4, 0),
    "adamw_bf16_pure": StateProfile(2, 2, 2, 2, 0),
    "adam8bit_bf16": StateProfile(2, 2, 1, 1, 0),
    "sgd_float32": StateProfile(4, 4, 0, 0, 0),
    "sgd_momentum_float32": StateProfile(4, 4, 4, 0, 0),
}
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
