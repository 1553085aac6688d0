"""Every completion and every sampled token is accounted for, once."""

from harness.audit.laws.law import GENERATING, Law

LAWS: tuple[Law, ...] = (
    Law(
        "sample_unique",
        "rollouts",
        """select 'sample ' || sample_id as place, count(*) || ' rollouts have this sample id' as detail
           from rollouts group by sample_id having count(*) > 1""",
    ),
    Law(
        "fate_of_each_sample",
        "fates",
        """select 'sample ' || sample_id as place, count(f.sample_id) || ' fates where there has to be one' as detail
           from rollouts r left join fates f using (sample_id) group by sample_id having count(f.sample_id) <> 1""",
    ),
    Law(
        "fate_is_true",
        "fates",
        """select 'sample ' || f.sample_id as place,
                  'fate ' || f.fate || ' but ' || count(t.sample_id) || ' trained rows' as detail
           from fates f left join trained t using (sample_id)
           group by f.sample_id, f.fate having (f.fate = 'trained') <> (count(t.sample_id) > 0)""",
    ),
    Law(
        "fate_has_reason",
        "fates",
        """select 'sample ' || sample_id as place, fate || ' without a reason' as detail
           from fates where fate <> 'trained' and reason is null""",
    ),
    Law(
        "tokens_close",
        "fates",
        f"""with known as (select trace_id from rollouts union select trace_id from lost_rollouts
                           union select "where" from faults where kind = 'batch_refused'),
                 declared as (select "where" as trace_id from faults where kind = 'rollouts_lost'),
                 dead as (select "where" as process from faults where kind = 'process_died'),
                 made as (
                   select trace_id, output_tokens,
                          trace_id in (select trace_id from known)
                          and not (trace_id in (select trace_id from declared)
                                   and process in (select process from dead)) as arrived,
                          trace_id in (select trace_id from declared)
                          or attempt_of(process) < (select attempt from settings) as excused
                   from spans where stage in {GENERATING}),
                 refused as (select policy_tokens from lost_fates where reason like 'refused:%'),
                 generated as (select coalesce(sum(output_tokens), 0) as n,
                                      count(distinct trace_id) filter (where not arrived) as strangers,
                                      min(trace_id) filter (where not arrived) as first
                               from made where arrived or not excused),
                 ended as (select (select coalesce(sum(policy_tokens), 0) from fates)
                                  + (select coalesce(sum(policy_tokens), 0) from refused)
                                  + (select coalesce(sum(list_sum(policy_mask)), 0) from lost_rollouts) as n)
            select 'all spans and fates' as place,
                   generated.n || ' tokens were generated, but trained + dropped + in flight + lost are ' || ended.n
                   || case when strangers > 0 then '; ' || strangers || ' generations never arrived and are not '
                      || 'declared lost, the first ' || first else '' end as detail
            from generated, ended where generated.n <> ended.n""",
    ),
    Law(
        "fate_tokens",
        "fates",
        """select 'sample ' || f.sample_id as place,
                  f.policy_tokens || ' tokens where its mask has ' || list_sum(r.policy_mask) as detail
           from fates f join rollouts r using (sample_id) where f.policy_tokens <> list_sum(r.policy_mask)""",
    ),
)
