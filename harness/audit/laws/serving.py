"""Which weights the engine served, and that records bear their versions."""

from harness.audit.laws.law import GENERATING, Law

LAWS: tuple[Law, ...] = (
    Law(
        "publication_chain",
        "publications",
        """with chain as (select *, lag(published_version) over w as p, lag(policy_version) over w as v
                         from publications where ok window w as (order by published_version))
           select 'publication ' || published_version as place,
                  'policy version ' || policy_version || ' after publication ' || p || ' of version ' || v as detail
           from chain where p is not null and (published_version <> p + 1 or policy_version < v)""",
    ),
    Law(
        "published_was_trained",
        "publications",
        """select 'publication ' || published_version as place,
                  'policy version ' || policy_version || ' is above the ' || max_v || ' that updates reached' as detail
           from publications, (select coalesce(max(policy_version_after), 0) as max_v from updates)
           where policy_version > max_v""",
    ),
    Law(
        "refusal_declared",
        "publications",
        """with refused as (select count(*) as n from (select ok from publications union all
                                                       select ok from lost_publications) where not ok),
                declared as (select count(*) as n from faults where kind = 'publication_refused')
           select 'all publications' as place,
                  refused.n || ' were not served, and ' || declared.n || ' faults say why' as detail
           from refused, declared where refused.n > declared.n""",
    ),
    Law(
        "controls_of_publication",
        "controls",
        """select 'publication ' || c.published_version || ', replica ' || c.replica as place,
                  case when p.published_version is null
                       then 'no publication has this number and version ' || c.policy_version
                       else c.tokens || ' tokens, but ' || len(c.engine_logprobs) || ' log-probs of the engine and '
                            || len(c.trainer_logprobs) || ' of the trainer' end as detail
           from controls c
           left join (select published_version, policy_version from publications union
                      select published_version, policy_version from lost_publications) p
             using (published_version, policy_version)
           where p.published_version is null
              or c.tokens <> len(c.engine_logprobs) or c.tokens <> len(c.trainer_logprobs)""",
    ),
    Law(
        "version_served",
        "rollouts",
        """with asked as (
             select sample_id, oldest_version(policy_version, token_policy_versions) as first,
                    coalesce(policy_version, list_max(token_policy_versions)) as last, t_generate_start as t_start,
                    case when policy_version is null then t_generate_end else t_generate_start end as t_last
             from rollouts where t_generate_start is not null),
           served as (
             select a.sample_id, a.first, a.last,
                    max(p.policy_version) filter (where p.t_end <= a.t_start) as before,
                    max(p.policy_version) filter (where p.t_start <= a.t_last) as begun
             from asked a join publications p on p.ok and p.t_start <= a.t_last group by all)
           select 'sample ' || sample_id as place,
                  'labelled version ' || first || case when last <> first then ' to ' || last else '' end
                  || ', the engine served ' || before || case when begun <> before then ' or ' || begun else '' end
                  as detail
           from served where first < before or last > begun""",
    ),
    Law(
        "version_of_span",
        "rollouts",
        f"""with ran as (select trace_id, list(distinct policy_version) as versions from spans
                         where stage in {GENERATING} and policy_version is not null group by trace_id)
            select 'sample ' || r.sample_id as place,
                   'labelled version ' || v.version || ', its generation ran at '
                   || array_to_string(list_sort(ran.versions), ', ') as detail
            from (select sample_id, trace_id,
                         unnest(case when policy_version is null then list_distinct(token_policy_versions)
                                     else [policy_version] end) as version from rollouts) v
            join rollouts r using (sample_id) join ran on ran.trace_id = r.trace_id
            where not list_contains(ran.versions, v.version)""",
    ),
)
