"""A restart goes on from one place, and from nowhere else."""

from harness.audit.laws.law import Law

LAWS: tuple[Law, ...] = (
    Law(
        "one_restore",
        "manifest",
        """select 'note ' || key as place, 'written ' || count(*) || ' times' as detail
           from manifest where key like 'resumed:%' group by key having count(*) > 1
           union all
           select 'attempt ' || attempt, 'adds to the history without saying where it goes on from'
           from (select attempt_of(process) as attempt from rollouts union select attempt_of(process) from trained
                 union select attempt_of(process) from updates union select attempt_of(process) from fates
                 union select attempt_of(process) from publications)
           where attempt > 0 and 'resumed:' || attempt not in (select key from manifest)""",
    ),
    Law(
        "restored_version",
        "manifest",
        """with notes as (select attempt_of(process) as attempt, (value->>'$.step')::bigint as step,
                                 (value->>'$.policy_version')::bigint as version
                          from manifest where key like 'resumed:%'),
                went_on as (select attempt_of(process) as attempt, min(step) as step,
                                   arg_min(policy_version_before, step) as version from updates group by all)
           select 'attempt ' || attempt as place,
                  'was restored at step ' || n.step || ' and version ' || n.version || ', its first update is step '
                  || w.step || ' from version ' || w.version as detail
           from notes n join went_on w using (attempt) where n.step <> w.step or n.version <> w.version""",
    ),
)
