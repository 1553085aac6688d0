"""Random kills over all processes of a cell: every resumed run is lawful, and trains on what the undisturbed one did.

`python -m benchmarks.kills 200 layout=disaggregated_async adapter.checkpoint.queue=discard`: kills by the dozen in one
cell, which is started again as often as it dies; cell number k is `fault=random_kill fault.seed=k`. Further words are
settings as on the command line. Undisturbed once, then each cell; the same command goes on where it was interrupted.
"""

import re
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
KILLS_A_CELL = 12
COMMON = ("adapter=reference", "repeats=1", "task.steps=60", "task.warmup_steps=1", "adapter.checkpoint.every=4")
ACTED = "the fault happened"
VICTIM = re.compile(r"SIGKILL to (\S+) at")


def choices(kills: int, words: Sequence[str]) -> list[Choice]:
    """The undisturbed cell, and as many as the kills need."""
    told = [*(word for word in COMMON if word.partition("=")[0] not in {w.partition("=")[0] for w in words}), *words]
    undisturbed = [word for word in told if not word.startswith("fault.")]
    each = [min(KILLS_A_CELL, kills - first) for first in range(0, kills, KILLS_A_CELL)]
    drilled = [[*told, "fault=random_kill", f"fault.seed={k}", f"fault.times={times}"] for k, times in enumerate(each)]
    return [one for said in (undisturbed, *drilled) for one in compose_choices(said)]


def campaign(kills: int, words: Sequence[str]) -> list[dict[str, Any]]:
    """Run it, or go on with it; the verdict of each cell."""
    run = run_session(choices(kills, words), Console(stderr=True))
    return [verdict.as_dict() for verdict in measure_verdicts(Path(run), load_manifest(Path(run)))]


def summary(verdicts: Sequence[dict[str, Any]]) -> list[str]:
    """What a campaign showed, a line each. Kills whose moment came when the run had ended are counted apart: a cell is
    judged by the others."""
    by_check = [{check["name"]: check for check in verdict["checks"]} for verdict in verdicts]
    victims = Counter(victim for checks in by_check for victim in victims_of(checks))
    restarts = sum(len(verdict["attempts"]) - 1 for verdict in verdicts)
    lines = [f"{victims.total()} kills in {len(verdicts)} cells, {restarts} restarts: {dict(sorted(victims.items()))}"]
    for name in dict.fromkeys(name for checks in by_check for name in checks if name != ACTED):
        results = Counter(checks[name]["result"] for checks in by_check if name in checks)
        lines.append(f"{name}: {', '.join(f'{result} {count}' for result, count in sorted(results.items()))}")
    same = sum(bool(verdict["divergence"] and verdict["divergence"]["same_samples"]) for verdict in verdicts)
    lines.append(f"same multiset of trained samples as the undisturbed run: {same} of {len(verdicts)} cells")
    return lines + [f"{v['cell_id']}: {words}" for v in verdicts for words in failures(v)]


def victims_of(checks: dict[str, dict[str, Any]]) -> list[str]:
    """The processes that were killed, by kind: `rollout-0.1` is a `rollout`."""
    said = checks.get(ACTED, {}).get("said", "")
    return [re.split(r"[-.]", name)[0] for name in VICTIM.findall(said)]


def failures(verdict: dict[str, Any]) -> list[str]:
    """What does not hold, or is not known, beside kills that came too late."""
    bad = [check for check in verdict["checks"] if check["result"] in ("broken", "unknown") and check["name"] != ACTED]
    return [f"{check['name']} {check['result']}: {check['said']}" for check in bad]


def main() -> None:
    """A short campaign, in a folder of its own below the working directory."""
    count, words = (int(sys.argv[1]), sys.argv[2:]) if sys.argv[1:] and sys.argv[1].isdigit() else (KILLS, [])
    for line in summary(campaign(count, words)):
        print(line)


if __name__ == "__main__":
    main()
