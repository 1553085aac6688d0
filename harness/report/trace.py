"""`rlaxes trace`: the identity chain of a sample as a picture in text, or as an object."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.report import format as fmt
from harness.report.chain import Chain, chains_of
from harness.report.views import visible

MOST_TOKENS = 8
MOST_TEXT = 60
LABEL = 17


def trace_object(run: Path, sample_id: str, cell_id: str | None = None) -> dict[str, Any]:
    """The chain of a sample in each adapter, layout and track of a run, or in one cell.

    Raises:
        UserError: no such cell or sample.
    """
    return {"run": run.name, "sample_id": sample_id, "chains": chains_of(run, sample_id, cell_id)}


def render_trace(run: Path, sample_id: str, cell_id: str | None = None) -> str:
    """The same as text, one picture a cell; `+1.234 s` counts from the cell's first span.

    Raises:
        UserError: no such cell or sample.
    """
    return "\n\n".join("\n".join(draw(chain)) for chain in chains_of(run, sample_id, cell_id))


def draw(chain: Chain) -> Iterator[str]:
    """The lines of one picture."""
    yield chain["cell_id"]
    prompt, rollout = chain["prompt"], chain["rollout"]
    yield _line("╭─", "prompt", prompt["prompt_id"], f"{prompt['tokens']} tokens", _quoted(prompt["text"]))
    yield "│"
    yield _line("├─", "sample", rollout["sample_id"], f"group {rollout['group_id']}", f"batch {rollout['trace_id']}")
    yield _line("│ ", "  generated", _span(rollout["generate_start_s"], rollout["generate_end_s"]), _stop(rollout))
    yield _line("│ ", "  text", _quoted(rollout["text"]))
    yield _line("│ ", "  log mu", _tokens(rollout["tokens"], rollout["behavior_logprobs"]))
    yield "│"
    yield _line("├─", "behaviour policy", *_behavior(chain["behavior"]))
    yield "│"
    yield _line("├─", "verifier", *_verifier(chain["verifier"]), _plus("advantage", rollout["advantage"]))
    yield "│"
    for consumed in chain["trained"]:
        yield from _consumption(consumed, rollout["tokens"])
    yield _line("╰─", "fate", *_fate(chain))


def _line(edge: str, label: str, *parts: str) -> str:
    return f"{edge} {label:<{LABEL}} " + " · ".join(part for part in parts if part)


def _quoted(text: str | None) -> str:
    if text is None:
        return "text not recorded"
    shown = " ".join(visible(text).split())
    return f"“{shown[:MOST_TEXT]}{'…' if len(shown) > MOST_TEXT else ''}”"


def _at(seconds: float | None) -> str:
    return "time unknown" if seconds is None else f"+{seconds:.3f} s"


def _span(start: float | None, end: float | None) -> str:
    if start is None or end is None:
        return _at(start)
    return f"{_at(start)} to {_at(end)} ({fmt.quantity(end - start, 's')})"


def _stop(rollout: dict[str, Any]) -> str:
    stop = f"stop {rollout['stop_reason']} ({rollout['stop_reason_source']})"
    tokens, sampled = len(rollout["tokens"]), rollout["policy_tokens"]
    observed = f", {tokens - sampled} of them observed" if sampled < tokens else ""
    return f"{tokens} tokens{observed}, {stop}, {fmt.words(rollout['status'])}"


def _tokens(tokens: list[int], logprobs: list[float | None]) -> str:
    pairs = zip(tokens[:MOST_TOKENS], logprobs[:MOST_TOKENS], strict=False)
    shown = "  ".join(f"{token}:{'–' if value is None else f'{value:.3f}'}" for token, value in pairs)
    more = len(tokens) - MOST_TOKENS
    return shown + (f"  … {more} more" if more > 0 else "")


def _behavior(behavior: dict[str, Any]) -> list[str]:
    versions, decoding = behavior["token_policy_versions"], behavior["decoding"]
    version = f"version {_known(behavior['policy_version'])}"
    if versions and len(set(versions)) > 1:
        version = f"versions {min(versions)} to {max(versions)} within the completion"
    published = f"published as {_known(behavior['published_version'])}"
    knobs = " ".join(f"{key} {decoding[key]:g}" for key in ("temperature", "top_p", "top_k", "min_p"))
    return [version, published, knobs, fmt.words(behavior["behavior_logprob_kind"])]


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _plus(name: str, value: float | None) -> str:
    return f"{name} unknown" if value is None else f"{name} {value:+.4g}"


def _verifier(verifier: dict[str, Any]) -> list[str]:
    total = verifier["reward_total"]
    parts = ", ".join(f"{name} {value:g}" for name, value in sorted(verifier["reward"].items()))
    if total is None:
        return [verifier["verifier_version"], "no reward: the verifier failed", _at(verifier["start_s"])]
    reward = f"reward {total:g}" + (f" ({parts})" if parts else "")
    return [verifier["verifier_version"], reward, _at(verifier["start_s"])]


def _consumption(consumed: dict[str, Any], tokens: list[int]) -> Iterator[str]:
    lag = f"lag {_known(consumed['lag_updates'])} updates, {_known(consumed['lag_publications'])} publications"
    age = "" if consumed["age_s"] is None else f"age {fmt.quantity(consumed['age_s'], 's')}"
    yield _line("├┬", "training batch", consumed["batch_id"], f"{consumed['policy_tokens']} policy tokens")
    epoch = f", epoch {consumed['epoch']}" if consumed["epoch"] else ""
    yield _line("│├", "optimizer step", f"{consumed['step']}{epoch}", _at(consumed["start_s"]), lag, age)
    if consumed["trainer_logprobs"] is not None:
        ratio = f"mean log ratio {fmt.number(consumed['mean_log_ratio'])}"
        yield _line("││", "  log pi", _tokens(tokens, consumed["trainer_logprobs"]), ratio)
    yield _line("│╰", "policy version", *_resulting(consumed))
    yield "│"


def _resulting(consumed: dict[str, Any]) -> list[str]:
    if consumed["resulting_policy_version"] is None:
        return ["the ledger has no such update"]
    change = f"{consumed['policy_version']} -> {consumed['resulting_policy_version']}"
    applied = "" if consumed["applied"] else "not applied"
    published = f"published as {consumed['published_as']} at {_at(consumed['published_s'])}"
    norm = f"gradient norm {fmt.number(consumed['grad_norm'])}"
    return [change, applied, published if consumed["published_as"] is not None else "never published", norm]


def _fate(chain: Chain) -> list[str]:
    fate = chain["fate"]
    if fate is None:
        return ["unknown: the ledger ends before it"]
    return [fmt.words(fate["fate"]), fate["reason"] or "", f"optimizer steps that consumed it: {len(chain['trained'])}"]
