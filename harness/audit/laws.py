"""Is the ledger lawful? Identities between its tables, each an SQL query that returns the places where it breaks.

A query returns two text columns, `place` and `detail`, one row a breach. The tables of the cell are views under their
own names. Sources: the identity chain is step 12.5.2, closure and lag MEASURES.md, atomic versions step 12.1.4.
"""

from dataclasses import dataclass

GENERATING = "('prefill', 'decode', 'generate')"


@dataclass(frozen=True)
class Law:
    """A named identity and the query for its breaches."""

    name: str
    table: str
    query: str


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
        "drop_has_reason",
        "fates",
        """select 'sample ' || sample_id as place, 'dropped without a reason' as detail
           from fates where fate = 'dropped' and reason is null""",
    ),
    Law(
        "tokens_close",
        "fates",
        f"""with made as (select coalesce(sum(output_tokens), 0) as n from spans where stage in {GENERATING}),
                 ended as (select coalesce(sum(policy_tokens), 0) as n from fates)
            select 'all spans and fates' as place,
                   made.n || ' tokens were generated, but trained + dropped + in flight are ' || ended.n as detail
            from made, ended where made.n <> ended.n""",
    ),
    Law(
        "fate_tokens",
        "fates",
        """select 'sample ' || f.sample_id as place,
                  f.policy_tokens || ' tokens where its mask has ' || list_sum(r.policy_mask) as detail
           from fates f join rollouts r using (sample_id) where f.policy_tokens <> list_sum(r.policy_mask)""",
    ),
    Law(
        "trained_was_generated",
        "trained",
        """select 'sample ' || t.sample_id || ', step ' || t.step as place, 'no rollout has this sample id' as detail
           from trained t left join rollouts r using (sample_id) where r.sample_id is null""",
    ),
    Law(
        "trained_once_a_step",
        "trained",
        """select 'sample ' || sample_id || ', step ' || step as place, 'consumed ' || count(*) || ' times' as detail
           from trained group by sample_id, step having count(*) > 1""",
    ),
    Law(
        "trained_lengths",
        "trained",
        """select 'sample ' || t.sample_id || ', step ' || t.step as place,
                  t.policy_tokens || ' policy tokens, ' || coalesce(len(t.trainer_logprobs), -1) || ' log-probs, for '
                  || list_sum(r.policy_mask) || ' and ' || len(r.response_tokens) || ' in the rollout' as detail
           from trained t join rollouts r using (sample_id)
           where t.policy_tokens <> list_sum(r.policy_mask)
              or coalesce(len(t.trainer_logprobs), len(r.response_tokens)) <> len(r.response_tokens)""",
    ),
    Law(
        "trained_in_update",
        "trained",
        """select 'step ' || t.step || ', batch ' || t.batch_id as place, 'no update of this step and batch' as detail
           from (select distinct step, batch_id from trained) t
           left join updates u on u.step = t.step and u.batch_id = t.batch_id where u.step is null""",
    ),
    Law(
        "trained_version",
        "trained",
        """select 'sample ' || t.sample_id || ', step ' || t.step as place,
                  'trained at version ' || t.policy_version || ' in an update from version '
                  || u.policy_version_before as detail
           from trained t join updates u using (step) where t.policy_version <> u.policy_version_before""",
    ),
    Law(
        "lag_not_negative",
        "trained",
        """select 'sample ' || t.sample_id || ', step ' || t.step as place,
                  'sampled by version ' || r.policy_version || ', trained at the older ' || t.policy_version as detail
           from trained t join rollouts r using (sample_id) where r.policy_version > t.policy_version""",
    ),
    Law(
        "update_counts",
        "updates",
        """select 'step ' || u.step as place,
                  u.records || ' records and ' || u.policy_tokens || ' tokens, trained rows have ' || count(t.step)
                  || ' and ' || coalesce(sum(t.policy_tokens), 0) as detail
           from updates u left join trained t using (step) group by u.step, u.records, u.policy_tokens
           having u.records <> count(t.step) or u.policy_tokens <> coalesce(sum(t.policy_tokens), 0)""",
    ),
    Law(
        "update_chain",
        "updates",
        """with chain as (select *, lag(step) over w as s, lag(policy_version_after) over w as v
                         from updates window w as (order by step))
           select 'step ' || step as place,
                  'goes from version ' || policy_version_before || ' to ' || policy_version_after || ', after step '
                  || coalesce(s, -1) || ' left version ' || coalesce(v, 0) as detail
           from chain
           where policy_version_after <> policy_version_before + applied::int
              or (s is not null and (step <> s + 1 or policy_version_before <> v))""",
    ),
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
        "version_served",
        "rollouts",
        """with served as (
             select r.sample_id, r.policy_version, max(p.policy_version) as newest
             from rollouts r join publications p on p.ok and p.t_end <= r.t_generate_start
             where r.policy_version is not null group by r.sample_id, r.policy_version)
           select 'sample ' || sample_id as place,
                  'labelled version ' || policy_version || ', the engine served ' || newest || ' at its start' as detail
           from served where policy_version <> newest""",
    ),
    Law(
        "version_of_span",
        "rollouts",
        f"""select 'sample ' || r.sample_id as place,
                   'labelled version ' || r.policy_version || ', its generation ran at ' || s.policy_version as detail
            from rollouts r
            join (select distinct trace_id, policy_version from spans
                  where stage in {GENERATING} and policy_version is not null) s using (trace_id)
            where r.policy_version <> s.policy_version""",
    ),
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
        "one_verifier",
        "rollouts",
        """select 'all rollouts' as place, 'several verifier or tokenizer or template versions in one run' as detail
           from rollouts having count(distinct verifier_version) > 1 or count(distinct tokenizer_hash) > 1
             or count(distinct template_hash) > 1""",
    ),
    Law(
        "prompt_of_bundle",
        "rollouts",
        """select 'sample ' || r.sample_id as place, 'its prompt ids are not those of prompt ' || r.prompt_id
                  || ' in the bundle' as detail
           from rollouts r left join bundle_prompts b using (prompt_id)
           where b.token_ids is null or b.token_ids <> r.prompt_tokens""",
    ),
    Law(
        "group_size",
        "rollouts",
        """select 'group ' || group_id as place, 'is marked complete with ' || count(*) || ' of '
                  || any_value(s.group_size) || ' completions' as detail
           from rollouts r, settings s where r.group_complete group by group_id
           having count(*) <> any_value(s.group_size)""",
    ),
)
