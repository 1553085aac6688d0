"""The quantities that the audit's rules speak of, whoever wrote them: a log, a table in a paper, our own ledger."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

QUANTITIES: dict[str, tuple[str, str]] = {
    "step_seconds": ("s", "wall time of one step as its writer times it"),
    "step_seconds_min": ("s", "the shortest of the steps that step_seconds is the mean of"),
    "step_seconds_max": ("s", "the longest of them"),
    "stage_seconds": ("s", "time of one named stage within a step; `part` names the stage"),
    "outside_seconds": ("s", "time of a step that its own timer leaves out (validation, checkpoints); `part` names it"),
    "concurrent_seconds": ("s", "time of a stage that runs within another or beside the trainer; `part` names it"),
    "wait_seconds": ("s", "time that the trainer waits for rollouts in a step"),
    "run_seconds": ("s", "wall time of the whole run"),
    "steps": ("1", "steps of the run"),
    "step_number": ("1", "the number that a step has in its source"),
    "total_tokens": ("tokens", "prompt and response tokens of a step, each prompt once for each of its samples"),
    "prompt_tokens": ("tokens", "prompt tokens of a step"),
    "response_tokens": ("tokens", "tokens that the policy sampled in a step"),
    "cumulative_tokens": ("tokens", "tokens since the start of the run"),
    "tokens_per_second": ("tokens/s", "tokens over time, of the whole run"),
    "tokens_per_second_min": ("tokens/s", "the smallest of the rates that tokens_per_second is the mean of"),
    "tokens_per_second_max": ("tokens/s", "the largest of them"),
    "tokens_per_second_per_device": ("tokens/s", "tokens over time and devices"),
    "flops_per_second": ("FLOP/s", "model operations over time, of the whole run"),
    "flops_per_second_per_device": ("FLOP/s", "model operations over time and devices"),
    "devices": ("1", "devices that a rate was divided by"),
    "devices_declared": ("1", "devices of the run, trainer and rollout"),
    "mfu": ("share", "model operations over the peak rate"),
    "memory_allocated": ("bytes", "peak that the allocator handed out on one device"),
    "memory_reserved": ("bytes", "peak that the allocator held on one device"),
    "memory_used": ("bytes", "what is in use on one device, by its driver: all that it has less what is free"),
    "memory_peak": ("bytes", "peak of the allocator on one device; its source does not say whether handed out or held"),
    "memory_card": ("bytes", "what one device has"),
    "packed_length": ("tokens", "positions of one packed sequence, all of them filled"),
    "packed_per_device": ("1", "packed sequences that each device trains on in a step"),
    "response_length_mean": ("tokens", "mean length of a response"),
    "response_length_max": ("tokens", "longest response"),
    "response_length": ("tokens", "length of one response"),
    "length_cap": ("tokens", "the limit that responses were cut at"),
    "clipped_share": ("share", "share of responses that the limit cut"),
    "samples": ("1", "responses of a step"),
    "prompts": ("1", "prompts of a step"),
    "group_size": ("1", "responses of one prompt"),
    "reward_mean": ("1", "mean reward of a step"),
    "reward_max": ("1", "largest reward of a step"),
    "reward_min": ("1", "smallest reward of a step"),
    "reward_std": ("1", "standard deviation of rewards"),
    "degenerate_fraction": ("share", "share of groups whose rewards are all equal"),
    "advantage_max": ("1", "largest advantage of a step"),
    "advantage_min": ("1", "smallest advantage of a step"),
    "grad_norm": ("1", "norm of the gradients before clipping"),
    "loss": ("1", "the loss of a step"),
    "implied_sample_tokens": ("tokens", "rate x devices x time / samples: prompt and response of one sample"),
    "prompt_of_family": ("tokens", "the middle of the prompt lengths that the other rows of a table imply"),
    "overlap_gain": ("1", "how many times as fast one run is by overlapping its stages"),
    "tail_gain": ("1", "how many times as fast by cutting or spreading the longest responses"),
    "response_length_of_other": ("tokens", "mean response length of the run that it is compared with"),
    "lag_config": ("updates", "lag that the settings allow"),
    "lag_mean": ("updates", "mean lag by versions"),
    "lag_min": ("updates", "smallest lag by versions"),
    "lag_max": ("updates", "largest lag by versions"),
    "ratio_mean": ("1", "mean importance ratio"),
    "ratio_max": ("1", "largest importance ratio"),
    "ratio_min": ("1", "smallest importance ratio"),
    "ratio_cap": ("1", "what ratios were truncated at"),
    "logprob_difference_mean": ("nats", "mean |difference| of a token's log-probabilities in trainer and engine"),
    "logprob_difference_max": ("nats", "largest |difference| of a token's log-probabilities in trainer and engine"),
    "share": ("share", "any other share; `part` says of what"),
    "ess_share": ("share", "effective sample size over the number of samples"),
    "logprob": ("nats", "log-probability of one sampled token"),
    "off_mask_logprob": ("nats", "stored log-probability of a token that the policy did not sample"),
    "off_mask_advantage": ("1", "stored advantage of a token that the policy did not sample"),
    "ids_changed": ("tokens", "tokens of a response whose id in the trainer is not the one that the engine sampled"),
    "probability_sum": ("1", "what the probabilities of one distribution add up to"),
}
"""Name -> unit and definition."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where a number stands: a file and line (0 where a line means nothing), the key, the step."""

    file: str
    line: int
    key: str
    step: int | None = None

    def __str__(self) -> str:
        """For a finding's evidence."""
        return f"{self.file}:{self.line} {self.key}" if self.line else f"{self.file} {self.key}"


@dataclass(frozen=True, slots=True)
class Observation:
    """One number under the name of a quantity. `part` tells apart what one case has several of (stages)."""

    quantity: str
    value: float
    where: Where
    part: str = ""


@dataclass(frozen=True)
class Case:
    """What one step, one row of a table, or one run says of itself; what rules are asked about.

    Attributes:
        name: what it is called in a finding.
        observations: its numbers.
        facts: settings and labels that rules may ask for (`mode`, `framework`, `synchrony`), as text.
        earlier: the case of the step before in the same run, for rules about change; None for the first.
    """

    name: str
    observations: tuple[Observation, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    earlier: "Case | None" = None

    def of(self, quantity: str, part: str | None = None) -> Iterator[Observation]:
        """Its numbers of a quantity."""
        return (o for o in self.observations if o.quantity == quantity and part in (None, o.part))

    def one(self, quantity: str, part: str | None = None) -> Observation | None:
        """The first of them, or None."""
        return next(self.of(quantity, part), None)
