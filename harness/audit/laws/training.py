"""What was trained on, at which version, how often, and how far behind."""

from harness.audit.laws.law import Law

LAWS: tuple[Law, ...] = (
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
        "trained_once_an_epoch",
        "trained",
        """select 'sample ' || sample_id || ', epoch ' || epoch as place, 'consumed ' || count(*) || ' times' as detail
           from trained group by sample_id, epoch having count(*) > 1""",
    ),
    Law(
        "trained_in_one_batch",
        "trained",
        """select 'sample ' || sample_id as place,
                  'trained in the batches ' || string_agg(distinct batch_of(batch_id), ', ') as detail
           from trained group by sample_id having count(distinct batch_of(batch_id)) > 1""",
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
        "trained_off_policy",
        "trained",
        """select 'sample ' || t.sample_id || ', step ' || t.step as place,
                  'the trainer scored a token that the policy did not sample' as detail
           from trained t join rollouts r using (sample_id)
           where list_sum(r.policy_mask) < len(r.response_tokens)
             and len(list_filter(list_zip(coalesce(t.trainer_logprobs, []), coalesce(t.old_logprobs, []),
                                          r.policy_mask[len(r.prompt_tokens) + 1:]),
                                 lambda x: x[3] = 0 and (x[1] is not null or x[2] is not null))) > 0""",
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
                  'sampled by version ' || coalesce(r.policy_version, list_max(r.token_policy_versions))
                  || ', trained at the older ' || t.policy_version as detail
           from trained t join rollouts r using (sample_id)
           where coalesce(r.policy_version, list_max(r.token_policy_versions)) > t.policy_version""",
    ),
    Law(
        "lag_bound",
        "trained",
        """with sampled as (select sample_id, t_generate_start as t,
                                  oldest_version(policy_version, token_policy_versions) as version from rollouts),
                later as (select s.sample_id, max(p.policy_version) as version, bool_or(p.ok) as served
                          from sampled s join publications p
                            on p.policy_version > s.version and p.t_end <= s.t group by s.sample_id),
                taken as (select t.*, min(t.policy_version) over (partition by batch_of(t.batch_id)) as first_version,
                                 s.version as sampled, case when l.served then s.version
                                                            else coalesce(l.version, s.version) end as due
                          from trained t join sampled s using (sample_id) left join later l using (sample_id))
           select 'sample ' || sample_id || ', step ' || step as place,
                  'sampled by version ' || sampled || ', trained at ' || policy_version || ' in a batch begun at '
                  || first_version || ', where the bound is ' || s.lag_bound as detail
           from taken, settings s
           where first_version - due > s.lag_bound
              or policy_version - due > s.lag_bound + s.updates_per_batch - 1""",
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
              or step <> coalesce(s, -1) + 1 or policy_version_before <> coalesce(v, 0)""",
    ),
)
