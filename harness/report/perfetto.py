"""A cell's timeline as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing load.

Format: "Trace Event Format" (Google, Catapult project): `X` complete events in microseconds, `M` names, `s`/`f` flows
from a generated batch to each training batch that consumes it, `C` counters for memory and queue.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from harness.contract import CellLedger

MICROSECOND = 1000.0
GENERATING = "('prefill', 'decode', 'generate')"
COUNTS = ("records", "input_tokens", "output_tokens", "policy_tokens", "padded_tokens")
Event = dict[str, Any]
Numbers = dict[str, int]
Lanes = dict[tuple[str, str], int]

ORIGIN = "select coalesce(least((select min(t_start) from spans), (select min(t) from memory)), 0)"
FLOWS = f"""
with pairs as (select distinct r.trace_id, t.batch_id, t.step from rollouts r join trained t using (sample_id)),
     made as (select trace_id, max_by(process, t_end) as process, max_by(device, t_end) as device, max(t_end) as t
              from spans where stage in {GENERATING} group by trace_id),
     used as (select step, min_by(process, t_start) as process, min_by(device, t_start) as device,
                     min(t_start) as t from spans where stage = 'forward_backward' group by step)
select made.process, made.device, made.t, used.process, used.device, used.t, pairs.trace_id, pairs.batch_id
from pairs join made using (trace_id) join used using (step) order by made.t, used.t"""


def write_perfetto(ledger: CellLedger, path: Path) -> None:
    """Write the trace of a cell; times are relative to its first record. A cell without spans gives an empty trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        for table in ("spans", "rollouts", "trained", "memory", "queue"):
            connection.from_parquet(str(ledger.path(table))).create_view(table)
        origin = connection.execute(ORIGIN).fetchall()[0][0]
        with path.open("w", encoding="utf-8") as file:
            file.write('{"displayTimeUnit": "ms", "otherData": ' + json.dumps({"cell": ledger.cell_id}))
            file.write(', "traceEvents": [\n')
            for number, event in enumerate(trace_events(connection, origin)):
                file.write((",\n" if number else "") + json.dumps(event))
            file.write("\n]}\n")


def trace_events(connection: duckdb.DuckDBPyConnection, origin: int) -> Iterator[Event]:
    """The events of a cell whose tables are views of `connection`; a track is a process of the ledger on a device."""
    tracks = connection.execute("select distinct process, device from spans order by 1, 2").fetchall()
    processes = {name: number for number, name in enumerate(dict.fromkeys(process for process, _ in tracks), start=1)}
    lanes = {(process, device): number for number, (process, device) in enumerate(tracks, start=1)}
    for (process, device), lane in lanes.items():
        at = {"pid": processes[process], "tid": lane}
        yield {"ph": "M", "name": "process_name", **at, "args": {"name": process}}
        yield {"ph": "M", "name": "thread_name", **at, "args": {"name": device}}
    yield from _spans(connection, origin, processes, lanes)
    yield from _flows(connection, origin, processes, lanes)
    yield from _counters(connection, origin)


def _us(t: int, origin: int) -> float:
    return (t - origin) / MICROSECOND


def _spans(connection: duckdb.DuckDBPyConnection, origin: int, processes: Numbers, lanes: Lanes) -> Iterator[Event]:
    columns = (
        "process",
        "device",
        "stage",
        "t_start",
        "t_end",
        "trace_id",
        "policy_version",
        "step",
        "detail",
        *COUNTS,
    )
    cursor = connection.execute(f"select {', '.join(columns)} from spans order by t_start")
    while rows := cursor.fetchmany(10_000):
        for values in rows:
            row = dict(zip(columns, values, strict=True))
            args = {key: row[key] for key in ("trace_id", "policy_version", "step") if row[key] is not None}
            args |= {key: row[key] for key in COUNTS if row[key]}
            args |= {"detail": json.loads(row["detail"])} if row["detail"] else {}
            yield {
                "ph": "X",
                "name": row["stage"],
                "cat": "stage",
                "ts": _us(row["t_start"], origin),
                "dur": (row["t_end"] - row["t_start"]) / MICROSECOND,
                "pid": processes[row["process"]],
                "tid": lanes[row["process"], row["device"]],
                "args": args,
            }


def _flows(connection: duckdb.DuckDBPyConnection, origin: int, processes: Numbers, lanes: Lanes) -> Iterator[Event]:
    """An arrow binds to the slice around its time: it leaves just before the end of generation."""
    for number, row in enumerate(connection.execute(FLOWS).fetchall(), start=1):
        made_by, made_on, made, used_by, used_on, used, trace, batch = row
        common = {"cat": "batch", "name": f"{trace} -> {batch}", "id": number}
        start = {"ts": _us(made, origin) - 0.001, "pid": processes[made_by], "tid": lanes[made_by, made_on]}
        end = {"ts": _us(used, origin) + 0.001, "pid": processes[used_by], "tid": lanes[used_by, used_on]}
        yield {"ph": "s", **common, **start}
        yield {"ph": "f", "bp": "e", **common, **end}


def _counters(connection: duckdb.DuckDBPyConnection, origin: int) -> Iterator[Event]:
    memory = "select t, component || ' ' || source, bytes from memory where component <> 'process' order by t"
    for t, name, size in connection.execute(memory).fetchall():
        yield {"ph": "C", "name": f"memory {name}", "ts": _us(t, origin), "pid": 0, "args": {"bytes": size}}
    queue = "select t, depth_records, depth_tokens from queue order by t"
    for t, records, tokens in connection.execute(queue).fetchall():
        args = {"records": records, "tokens": tokens}
        yield {"ph": "C", "name": "queue depth", "ts": _us(t, origin), "pid": 0, "args": args}
