"""The fake loop holds on to no library."""


def hook_drift() -> list[str]:
    """No hook can drift."""
    return []
