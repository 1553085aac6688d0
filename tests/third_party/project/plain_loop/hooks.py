"""What the loop holds on to in the installed libraries, as data."""

from harness.probe.hooks import HookPoint, verify_hooks

HOOKS = [
    HookPoint("transformers:AutoModelForCausalLM.from_pretrained", "startup", "loads the starting checkpoint"),
    HookPoint("transformers:PreTrainedTokenizerFast.decode", "verifier", "text of a completion", ("token_ids",)),
    HookPoint("transformers:DynamicCache.update", "generate", "keys and values of the tokens so far"),
]


def hook_drift() -> list[str]:
    """One message for each place that the installed libraries no longer have."""
    return verify_hooks(HOOKS)
