"""The work was the task's."""

from harness.audit.laws.law import Law

LAWS: tuple[Law, ...] = (
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
