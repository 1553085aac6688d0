"""Spans and the queue's events fit together in time."""

from harness.audit.laws.law import Law

LAWS: tuple[Law, ...] = (
    Law(
        "span_time",
        "spans",
        """select process || ' ' || stage || ' at ' || t_start as place, 'ends before it starts' as detail
           from spans where t_end < t_start""",
    ),
    Law(
        "spans_do_not_overlap",
        "spans",
        """with ordered as (select *, max(t_end) over (partition by process order by t_start, t_end
                                                       rows between unbounded preceding and 1 preceding) as before
                           from spans)
           select process || ' ' || stage || ' at ' || t_start as place,
                  'begins ' || (before - t_start) || ' ns before the span before it ended' as detail
           from ordered where t_start < before""",
    ),
    Law(
        "queue_depth",
        "queue",
        """with moved as (select *,
                                case when event = 'put' then 1 when event in ('get', 'drop') then -1 else 0 end as way
                         from queue),
                kept as (select *, sum(way * records) over w as r, sum(way * tokens) over w as n
                         from moved window w as (partition by process order by file_row_number))
           select process || ' ' || event || ' at ' || t as place,
                  'the depth is said to be ' || depth_records || ' records and ' || depth_tokens
                  || ' tokens, what came less what went is ' || r || ' and ' || n as detail
           from kept where depth_records <> r or depth_tokens <> n
              or depth_records < 0 or (depth_records = 0 and depth_bytes <> 0) or depth_bytes < 0""",
    ),
    Law(
        "queue_admission",
        "queue",
        """with changes as (select *, lag(event, 1, 'open') over w as before, lag(reason) over w as why from queue
                            where event in ('close', 'open')
                            window w as (partition by process order by file_row_number))
           select process || ' ' || event || ' at ' || t as place,
                  case when event = before then 'admission was that already'
                       else 'closed without saying by which limit' end as detail
           from changes
           where (event = before and (event = 'open' or reason = why)) or (event = 'close' and reason is null)
           union all
           select process || ' drop at ' || t, 'dropped without a reason' from queue
           where event = 'drop' and reason is null""",
    ),
)
