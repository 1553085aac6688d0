"""What a layout does not have, and what the trainer does not model: told apart from zero. Standard library only."""

from adapters.reference.settings import Settings

TRAINER_MODELS = ["temperature"]
"""Decoding knobs that the trainer's log-probs model."""


def absent_stages(settings: Settings) -> dict[str, str]:
    """Stages that this cell does not have, and why: absent is not zero."""
    absent = {}
    if not settings.checkpoint.every and settings.checkpoint.mtbf_s is None:
        absent["checkpoint"] = "this cell writes none"
    if settings.attempt == 0:
        absent["restore"] = "the run starts from the bundle's checkpoint"
    if settings.layout != "disaggregated_async":
        absent["queue_wait"] = "each batch is trained on as soon as it is collected: none waits in a queue"
    if not settings.needs_scoring:
        absent["logprob_recompute"] = (
            "one optimizer step takes the whole generated batch, so the ratio is 1 by construction, and kl_beta is 0"
        )
    return absent
