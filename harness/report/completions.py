"""A few completions of a cell, for a reader to see what the figures speak of."""

import pyarrow.parquet as pq

from harness.contract import CellLedger
from harness.report.model import Completion

EACH = 2
COLUMNS = ["sample_id", "policy_version", "reward_total", "stop_reason", "text"]


def some_completions(ledger: CellLedger, adapter: str, layout: str, track: str) -> list[Completion]:
    """The first completions of the first and of the last batch that a cell wrote; only two pieces of the file are
    read."""
    file = pq.ParquetFile(ledger.path("rollouts"))
    count = file.metadata.num_rows
    if not count:
        return []
    first = next(file.iter_batches(EACH, columns=[*COLUMNS, "trace_id"])).to_pylist()
    last = file.read_row_group(file.num_row_groups - 1, columns=[*COLUMNS, "trace_id"])
    of_batch = [row for row in last.to_pylist() if row["trace_id"] == last["trace_id"][-1].as_py()]
    rows = {row["sample_id"]: row for row in [*first, *of_batch[:EACH]]}
    return [
        Completion(
            adapter=adapter,
            layout=layout,
            track=track,
            sample_id=row["sample_id"],
            policy_version=row["policy_version"],
            reward=row["reward_total"],
            stop_reason=row["stop_reason"],
            text=row["text"] if row["text"] is not None else "(text not recorded)",
        )
        for row in rows.values()
    ]
