"""What a simulation is told by: the figures that are printed, in their order."""

from typing import Any

FIGURES = {
    "seconds": "Simulated, s",
    "steps": "Optimizer steps",
    "tokens_per_s": "Training tokens/s",
    "period_s": "Period, s",
    "trainer_busy": "Trainer busy, share",
    "trainer_waiting": "Trainer waiting, share",
    "lag_mean": "Lag, mean, updates",
    "lag_p95": "Lag, p95, updates",
    "lag_max": "Lag, largest, updates",
    "age_mean_s": "Age, mean, s",
    "ess_tokens": "ESS / n, tokens (synthetic)",
    "ess_sequences": "ESS / n, sequences (synthetic)",
    "depth_mean_tokens": "Queue depth, mean, tokens",
    "depth_max_tokens": "Queue depth, largest, tokens",
    "overshoot_tokens": "Overshoot after closing, tokens",
    "backpressure": "Admission closed, share",
    "dropped_share": "Dropped tokens, share",
    "lost_tokens": "Lost by deaths of replicas, tokens",
}


def number(value: Any) -> str:
    """A figure with four digits that count."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
