"""The installed OpenRLHF and vLLM have every place that the adapter holds on to."""

from adapters.openrlhf.hooks import hook_drift


def test_nothing_has_drifted() -> None:
    assert hook_drift() == []
