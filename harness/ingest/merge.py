"""The numbers of a run's files as one query: each cell (a series at a step) once."""

from harness.ingest.cells import Cells
from harness.ingest.group import Group
from harness.ingest.seams import Start

ROLES = ("", "growth since the entry before", "replaced by a later attempt")
"""What of a series a ledger holds: what the framework wrote; of a counter that runs on, what each entry added; and what
stood at a step that a later attempt wrote again."""
KEPT, GROWTH, REPLACED = range(len(ROLES))
FIRST, LAST = -(2**62), 2**62

_ONE_FILE = "select step, series, value, {kept} as role, 0 as winner from read_parquet({path})"
_MERGED = """
    with cells as ({table}),
    placed as (
        select *, max(attempt) over cell as winner,
               row_number() over (cell order by attempt desc, rank desc, seq desc) as place,
               row_number() over (partition by series, step, attempt order by rank desc, seq desc) as own
        from cells where step between {low} and {high} window cell as (partition by series, step)),
    bare as (
        select *, max(rank) over (partition by series, attempt) as best from cells where step is null)
    select step, series, value, {kept} as role, winner, attempt, seq from placed where place = 1
    union all
    select step, series, value, {replaced}, winner, attempt, seq from placed where own = 1 and attempt < winner
    union all
    select step, series, value, {kept}, attempt, attempt, seq from bare where rank = best
    union all
    select step, series, value, {kept}, attempt, attempt, seq from cells where step < {low} or step > {high}
    order by step nulls last, role, attempt, seq
"""


def merged(group: Group, starts: list[Start], cells: Cells) -> str:
    """A query for step, series, value, role and, of what was replaced, the number of the attempt that did. Of
    the files of an attempt that have a cell, the one that prints more digits is taken."""
    if len(group.files) == 1 and not any(start.number for start in starts):
        return _ONE_FILE.format(kept=KEPT, path=cells.quoted(group.files[0].cells))
    low, high = (FIRST, LAST) if len(group.files) > 1 else _contested(starts)
    ranks = sorted(group.files, key=lambda file: (cells.digits(file.cells), file.values))
    table = " union all ".join(
        f"select step, series, value, attempt + {group.base[file.name]} as attempt, {ranks.index(file)} as rank, "
        f"file_row_number as seq from read_parquet({cells.quoted(file.cells)}, file_row_number = true) "
        f"where not list_contains({sorted(group.told_twice.get(file.name, ()))}::int[], series)"
        for file in group.files
    )
    return _MERGED.format(table=table, low=low, high=high, kept=KEPT, replaced=REPLACED)


def _contested(starts: list[Start]) -> tuple[int, int]:
    """The steps that more than one attempt may have."""
    later = [start for start in starts if start.number]
    low = min((start.first for start in later if start.first is not None), default=LAST)
    return low, max((start.highest for start in later if start.highest is not None), default=FIRST)


def grown(query: str, counters: list[int]) -> str:
    """A query like it, for what counters added from one entry to the next. Where one runs back, as it does when a
    restart begins at 0, nothing is known of that entry, so it has none; nor has the first."""
    return f"""
        select step, series, value, {GROWTH} as role from (
            select step, series, value - lag(value) over (partition by series order by step) as value
            from ({query}) where role = {KEPT} and step is not null and list_contains({counters}, series))
        where value >= 0 and isfinite(value) order by step"""
