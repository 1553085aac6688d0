"""Random kills over all processes of a cell: every resumed run is lawful, and trains on what the undisturbed one did.

`python -m benchmarks.kills 200 layout=disaggregated_async adapter.checkpoint.queue=discard`: kill number k is
`fault=random_kill fault.seed=k`; further words are settings as on the command line. Undisturbed once, then each kill.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.execute.compose import Choice, compose_choices
from harness.execute.session import run_session
from harness.report.measured import load_manifest, measure_verdicts

KILLS = 5
COMMON = ("adapter=reference", "repeats=1", "task.steps=6", "task.warmup_steps=1", "adapter.checkpoint.every=2")
ACTED = "the fault happened"


def choices(kills: int, words: Sequence[str]) -> list[Choice]:
    """The undisturbed cell, and one for each kill."""
    told = [*(word for word in COMMON if word.partition("=")[0] not in {w.partition("=")[0] for w in words}), *words]
    kill = [*told, "fault=random_kill"]
    undisturbed = [word for word in told if not word.startswith("fault.")]
    return compose_choices(undisturbed) + [
        one for seed in range(kills) for one in compose_choices([*kill, f"fault.seed={seed}"])
    ]


def campaign(kills: int, words: Sequence[str]) -> list[dict[str, Any]]:
    """Run it, or go on with it; the verdict of each kill."""
    run = run_session(choices(kills, words), Console(stderr=True))
    return [verdict.as_dict() for verdict in measure_verdicts(Path(run), load_manifest(Path(run)))]


def summary(verdicts: Sequence[dict[str, Any]]) -> list[str]:
    """What a campaign showed, a line each. A kill whose moment came when the run had ended is counted apart."""
    by_check = [{check["name"]: check for check in verdict["checks"]} for verdict in verdicts]
    acted = [(v, c) for v, c in zip(verdicts, by_check, strict=True) if c.get(ACTED, {}).get("result") == "holds"]
    victims = Counter(c[ACTED]["said"].partition("SIGKILL to ")[2].partition(" at ")[0] for _, c in acted)
    held = Counter(name for _, c in acted for name, check in c.items() if check["result"] != "broken")
    names = dict.fromkeys(name for _, c in acted for name in c)
    lines = [f"{len(acted)} of {len(verdicts)} kills found their process: {dict(sorted(victims.items()))}"]
    lines += [f"{name}: {held[name]} of {len(acted)}" for name in names if name != ACTED]
    same = sum(bool(v["divergence"] and v["divergence"]["same_samples"]) for v, _ in acted)
    lines.append(f"same multiset of trained samples as the undisturbed run: {same} of {len(acted)}")
    bad = [v for v, _ in acted if not v["continues"]]
    return lines + [f"{v['cell_id']}: {v['word']}" for v in bad]


def main() -> None:
    """A short campaign, in a folder of its own below the working directory."""
    count, words = (int(sys.argv[1]), sys.argv[2:]) if sys.argv[1:] and sys.argv[1].isdigit() else (KILLS, [])
    for line in summary(campaign(count, words)):
        print(line)


if __name__ == "__main__":
    main()
