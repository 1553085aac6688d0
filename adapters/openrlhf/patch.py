"""What a patch is. Standard library only."""

from dataclasses import dataclass

from harness.probe.hooks import HookPoint


@dataclass(frozen=True)
class Patch:
    """A change to a framework's module in memory, made right after the module's import.

    Attributes:
        name: what it is called in messages and in the manifest.
        module: the module after whose import it is made.
        function: `module:function` of ours, which is given that module.
        why: what would go wrong without it.
        holds: the places that it holds on to; each must exist in the installed version.
    """

    name: str
    module: str
    function: str
    why: str
    holds: tuple[HookPoint, ...]
