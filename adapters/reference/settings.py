"""What a cell asks of the reference loop, as one frozen object. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Decoding:
    """The sampling rule, a part of the behaviour policy [12.1.4].

    Attributes:
        top_k: 0 is off.
        min_p: 0 is off.
        stop_at_eos: False on the fixed-length track: end-of-sequence is then sampled like any other token.
    """

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    max_tokens: int
    stop_at_eos: bool


@dataclass(frozen=True)
class Objective:
    """The loss of a minibatch [12.4.1]; `loss` is `token_mean` or `sequence_mean`."""

    clip_low: float
    clip_high: float
    loss: str
    kl_beta: float
    advantage_std: str
    std_ddof: int
    advantage_eps: float
    mask_truncated: bool


@dataclass(frozen=True)
class Optimizer:
    """AdamW with gradient clipping at a constant learning rate."""

    learning_rate: float
    adam_beta1: float
    adam_beta2: float
    adam_eps: float
    weight_decay: float
    max_grad_norm: float
    gradient_checkpointing: bool


@dataclass(frozen=True)
class Settings:
    """A cell's work. `minibatches` and `inner_epochs` count optimizer steps over one generated batch, `micro_batches`
    the forward passes of one optimizer step; `verify_every` counts publications between two checks of the engine."""

    run_id: str
    directory: Path
    bundle: Path
    device: str
    threads: int
    seed: int
    engine: str
    verify_every: int
    steps: int
    prompts_per_batch: int
    group_size: int
    minibatches: int
    micro_batches: int
    inner_epochs: int
    verifier_timeout_s: float
    decoding: Decoding
    objective: Objective
    optimizer: Optimizer

    @classmethod
    def from_cell(cls, cell: Mapping[str, Any]) -> Self:
        """The settings of a `cell.json`."""
        task, options = cell["task"], cell["adapter_options"]
        return cls(
            run_id=cell["run_id"],
            directory=Path(cell["directory"]),
            bundle=Path(cell["bundle"]),
            device=cell["profile"]["device"],
            threads=cell["profile"]["threads"],
            seed=cell["seed"],
            engine=options["engine"],
            verify_every=options["verify_every"],
            decoding=Decoding(**_pick(Decoding, task, stop_at_eos=cell["track"] != "fixed_length")),
            objective=Objective(**_pick(Objective, task)),
            optimizer=Optimizer(**_pick(Optimizer, task)),
            **{name: task[name] for name in _COUNTS},
        )

    @property
    def batch_size(self) -> int:
        """Completions of one generated batch."""
        return self.prompts_per_batch * self.group_size

    @property
    def updates_per_batch(self) -> int:
        """Optimizer steps over one generated batch."""
        return self.minibatches * self.inner_epochs

    @property
    def batches(self) -> int:
        """Generated batches of the run; the last may be trained on in part only."""
        return -(-self.steps // self.updates_per_batch)


_COUNTS = (
    "steps",
    "prompts_per_batch",
    "group_size",
    "minibatches",
    "micro_batches",
    "inner_epochs",
    "verifier_timeout_s",
)


def _pick(kind: type, task: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    return given | {name: task[name] for name in kind.__annotations__ if name not in given}
