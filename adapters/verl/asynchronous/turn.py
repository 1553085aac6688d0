"""verl's agent loop of one turn, where a completion may be interrupted: it says which weights sampled what.

Named by `rollout.agent.agent_loop_config_path`. `fully_async` asks for the loop `single_turn_agent` whatever the
settings say (fully_async_policy/detach_utils.py), so ours bears that name too.
"""

import functools
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput

from adapters.verl.asynchronous.segments import collecting, witnessed
from adapters.verl.asynchronous.stamps import STAMPS, engine_facts, token_stamps
from adapters.verl.records import FIELD
from adapters.verl.samples import PUBLISHED, ROUND, VERSION
from adapters.verl.turn import WatchedTurn
from harness.probe.probe import CELL_VARIABLE

PLACE = "session_id"
_STARTED: Counter[str] = Counter()


class SegmentedTurn(WatchedTurn):
    """`WatchedTurn`, where the older trainers do not say which place in its group a completion has."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """One completion for one row of the data."""
        # The weights at hand when a prompt is handed out need not be those that continue it: the tokens say.
        row |= {VERSION: None, PUBLISHED: None}
        if PLACE not in row:
            row |= _placed(row["extra_info"]["index"], row["uid"])
        self.server_manager = witnessed(self.server_manager)
        with collecting() as segments:
            output: AgentLoopOutput = await super().run(sampling_params, **row)
        own = output.extra_fields[FIELD] | engine_facts(segments)
        own[STAMPS] = token_stamps(segments, len(output.response_ids))
        # The older trainers keep nothing else of the row that a completion continues.
        own["row"] = {key: row[key] for key in ("extra_info", ROUND, PLACE)}
        output.extra_fields[FIELD] = own
        return output


def _placed(index: int, uid: str) -> dict[str, int]:
    """Batch and place of a completion: prompts are handed out in the order of the data, and the completions of one are
    started in the order of their group, in one process."""
    place = _STARTED[uid]
    _STARTED[uid] += 1
    return {ROUND: int(index) // _prompts_per_batch(), PLACE: place}


@functools.cache
def _prompts_per_batch() -> int:
    cell = json.loads(Path(os.environ[CELL_VARIABLE]).read_text(encoding="utf-8"))
    return int(cell["task"]["prompts_per_batch"])
