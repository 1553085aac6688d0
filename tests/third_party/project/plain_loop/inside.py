"""The framework side, in the adapter's environment: `python -m plain_loop.inside` runs the cell of `RLAXES_CELL`.

`--check-hooks` prints, as a JSON list, what the loop holds on to in the installed libraries and no longer finds.
"""

import time

STARTED = time.perf_counter_ns()

import json  # noqa: E402  (imports are part of the start-up that STARTED times)
import sys  # noqa: E402

from harness.probe import Probe  # noqa: E402
from harness.probe.hooks import HookPoint, verify_hooks  # noqa: E402

HOOKS = [
    HookPoint("transformers:AutoModelForCausalLM.from_pretrained", "startup", "loads the starting checkpoint"),
    HookPoint("transformers:PreTrainedTokenizerFast.decode", "verifier", "text of a completion", ("token_ids",)),
    HookPoint("transformers:DynamicCache.update", "generate", "keys and values of the tokens so far"),
]


def main() -> int:
    """Run the cell; what goes wrong is a fault in the ledger, and raised on."""
    if "--check-hooks" in sys.argv[1:]:
        drift = verify_hooks(HOOKS)
        sys.stdout.write(json.dumps(drift) + "\n")
        return 1 if drift else 0
    probe = Probe.from_environment()
    probe.progress(0, probe.cell["task"]["steps"], "importing torch")
    try:
        from plain_loop.loop import run_cell

        run_cell(probe, STARTED)
    except BaseException as error:
        probe.fault("exception", "system", "plain_loop.inside", f"{type(error).__name__}: {error}")
        raise
    probe.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
