"""What a law is, and what its query may use."""

from dataclasses import dataclass

GENERATING = "('prefill', 'decode', 'generate')"


@dataclass(frozen=True)
class Law:
    """A named identity and the query for its breaches: two text columns, `place` and `detail`, one row a breach.

    A query finds the tables of the cell under their own names, with `file_row_number`; `settings`, one row of
    `group_size`, `lag_bound` and `updates_per_batch` (null where the cell does not say) and the last `attempt`; where
    the run has them the prompts, `bundle_prompts`; and the macros `attempt_of(process)`, `batch_of(batch_id)`, the
    generated batch that a minibatch was cut from, and `oldest_version(one, each)` of a completion.
    """

    name: str
    table: str
    query: str


MACROS = (
    "create macro attempt_of(process) as coalesce(try_cast(nullif(split_part(process, '~', 2), '') as bigint), 0)",
    "create macro batch_of(batch_id) as regexp_replace(batch_id, '-mb-.*$', '')",
    "create macro oldest_version(one, each) as coalesce(one, list_min(each))",
)
