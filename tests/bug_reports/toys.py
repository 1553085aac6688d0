"""Distributions of a few tokens, cells of the fake adapter, and cases of the audit, for the tests of the reports."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.audit.quantities import QUANTITIES, Case, Observation, Where
from harness.audit.rule import Finding, findings
from harness.audit.rules import RULES
from harness.measure.values import Value
from tests.fakes import figures

SMALL = {"steps": 3, "warmup_steps": 1, "prompts_per_batch": 1, "group_size": 4}
"""A task of two measured steps with one group each."""


def log_softmax(logits: Sequence[float], temperature: float = 1.0) -> list[float]:
    """Log-probabilities of the distribution that is sampled from at a temperature."""
    scaled = [logit / temperature for logit in logits]
    whole = math.log(math.fsum(math.exp(value) for value in scaled))
    return [value - whole for value in scaled]


def kept_mass(probabilities: Sequence[float], top_p: float = 1.0, top_k: int = 0, min_p: float = 0.0) -> float:
    """What top-p, top-k and min-p leave of a distribution to sample from."""
    ordered = sorted(probabilities, reverse=True)
    kept, mass = 0, 0.0
    for probability in ordered:
        if mass >= top_p - 1e-12 or (top_k and kept == top_k) or probability < min_p * ordered[0]:
            break
        kept, mass = kept + 1, mass + probability
    return mass


def cell(folder: Path, task: dict[str, Any] | None = None, **truth: Any) -> dict[str, Value]:
    """The figures of a small cell of the fake adapter."""
    return figures(folder, SMALL | (task or {}), **truth)


def case(numbers: Mapping[str, float], earlier: Mapping[str, float] | None = None) -> Case:
    """A case from quantities, or `quantity:part`."""
    seen = []
    for key, value in numbers.items():
        quantity, _, part = key.partition(":")
        assert quantity in QUANTITIES
        seen.append(Observation(quantity, value, Where("a.log", 1, key, 1), part))
    return Case("a case", tuple(seen), earlier=case(earlier) if earlier else None)


def found(numbers: Mapping[str, float], earlier: Mapping[str, float] | None = None) -> dict[str, Finding]:
    """What the rules find, by their names."""
    return {finding.rule: finding for finding in findings(case(numbers, earlier), RULES)}
