"""The log-prob regimes [12.4.3] and corrections [12.4.4], and what each asks of a cell. Standard library only.

`recompute`: the old log-probs are computed by the trainer before a batch's first step. `engine`: they are those of the
behaviour policy, as the engine gave them, so that the objective's ratio itself corrects. `unified`: the same, where one
module in one process both samples and trains; the trainer's own log-probs must then equal them at lag 0.
"""

from adapters.reference.settings import Settings

REGIMES = ("recompute", "engine", "unified")
CORRECTIONS = ("none", "clip", "mask")
LEVELS = ("token", "sequence")
PUBLICATIONS = ("full", "sharded", "adapter")


def refusal(settings: Settings) -> str | None:
    """Why the trainer must not run under these settings, or None."""
    stale = settings.staleness
    known = (
        ("log-prob regime", settings.logprobs, REGIMES),
        ("correction", stale.correction, CORRECTIONS),
        ("level of correction", stale.level, LEVELS),
        ("publication", settings.publication, PUBLICATIONS),
    )
    for name, value, values in known:
        if value not in values:
            return f"the reference loop has no {name} {value}; it has {', '.join(values)}"
    if not stale.cap > 0.0:
        return f"importance weights cannot be capped at {stale.cap:g}"
    if settings.pools.trainer_ranks > 1 and settings.layout.startswith("colocated"):
        return "a colocated layout trains in one process; pools.trainer_ranks must be 1"
    if settings.publication == "adapter" and not settings.lora.rank:
        return "publication=adapter needs an adapter: lora.rank above 0"
    if settings.versions == "token" and settings.engine != "vllm":
        return (
            "versions=token needs engine=vllm: continuous batching keeps what requests in flight computed with the old "
            "weights; versions=turn is what it can do"
        )
    if settings.versions == "token" and settings.publication == "adapter":
        return "versions=token needs publication=full: vLLM ends a request with the adapter that it began with"
    return _truncated(settings) or _of_regime(settings)


def _truncated(settings: Settings) -> str | None:
    decoding = settings.decoding
    cut = decoding.top_p < 1.0 or decoding.top_k != 0 or decoding.min_p != 0.0
    uses = settings.logprobs != "recompute" or settings.staleness.correction != "none"
    if cut and (uses or settings.staleness.ess_floor is not None):
        return (
            "top_p, top_k and min_p cut tokens away that the trainer's policy can choose: its ratio to the behaviour "
            "policy corrects nothing there, so no log-prob regime but recompute, no correction and no ess_floor"
        )
    return None


def _of_regime(settings: Settings) -> str | None:
    if settings.logprobs == "recompute":
        return None
    if settings.staleness.ess_floor is not None:
        return "ess_floor needs log-probs that the trainer recomputes before a batch's first step; logprobs=recompute"
    if settings.logprobs == "engine":
        return None
    if settings.engine != "transformers" or not settings.layout.startswith("colocated"):
        return "logprobs=unified needs one module that samples and trains: the embedded engine in a colocated layout"
    if settings.staleness.correction != "none":
        return "logprobs=unified leaves a correction nothing to do"
    return None
