"""docs/plan_validation.md: `python -m harness.validate.page`. A test holds the page to the code."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.validate import splits, steps, sweep, systems
from harness.validate.outcome import Check, Outcome, Refusal, checks, refusals
from harness.validate.table import FILE, Published, published

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plan_validation.md"
HEAD = """# What was published, beside what the plan says

Made by `python -m harness.validate.page` from `harness/validate/published.yaml`, which holds every number below as its
source printed it. None of it is of this project. "Error" is predicted over reported, less one. A row that fails a rule
of `rlaxes audit` is used for nothing, and what a row does not print is not guessed: both are refused, with the reason.
Where a constant was fitted, the table says on which row; every other prediction has none.
"""


def validation_page() -> str:
    """The page as Markdown."""
    parts = [HEAD, _summary(), _sums(), _one_off(), _waiting(), _changed(), _sync_alone(), _signs(), _devices()]
    parts += [_sweep(), _queues(), _gains(), _refused(), _sources(published())]
    return "\n".join(parts)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def _checked(outcomes: list[Outcome], *, fitted: bool = False) -> str:
    heads = ["row", "predicted", "s", "reported, s", "error", *(["fitted on"] if fitted else [])]
    rows = []
    for check in checks(outcomes):
        told = [check.row, f"`{check.formula}`", f"{check.predicted:.5g}", f"{check.reported:g}", _error(check)]
        rows.append(told + ([_fitted(check)] if fitted else []))
    return _table(heads, rows)


def _error(check: Check) -> str:
    return "it is fitted here" if check.row == check.fitted else f"{check.error:+.1%}"


def _fitted(check: Check) -> str:
    return "itself" if check.row == check.fitted else check.fitted


KINDS: tuple[tuple[str, Callable[[], list[Outcome]]], ...] = (
    ("1. sums of stages", steps.sequential),
    ("2. one step off, `s` of the other row", lambda: steps.one_step_off()[:2]),
    ("3. wait + T + `s` of one row", steps.waiting),
    ("4. one stage changed", lambda: steps.one_stage_changed()[:1]),
    ("5. asynchronous from synchronous, linear", steps.from_sync_alone),
    ("7. as many GPU-seconds", systems.device_seconds),
)


def _summary() -> str:
    rows = []
    for name, predict in KINDS:
        outcomes = predict()
        errors = [abs(check.error) for check in checks(outcomes) if check.row != check.fitted]
        near = sum(error <= 0.03 for error in errors), sum(error <= 0.15 for error in errors)
        rows.append([name, str(len(errors)), *map(str, near), f"{max(errors):.1%}", str(len(refusals(outcomes)))])
    heads = ["what", "rows predicted", "within 3 %", "within 15 %", "largest error", "refused"]
    return "## In short\n\n" + _table(heads, rows) + SHORT


SHORT = """
Sums of measured stages, and overlap of stages that were measured in the overlapped run, hold to a few per cent. What a
synchronous run says about an asynchronous one on other numbers of GPUs does not: linear scaling is wrong by up to 2.5
times, always on the slow side. So `plan pipeline` gives a split with the warning to measure both stages again at it.
"""


def _sums() -> str:
    return f"""## 1. Do the stages add up to the step?

`C_seq = G + T`, over all printed stages; no constant. Of `{steps.ASYNC_BLOCK}`, an asynchronous step, the trainer's
wait stands for G.

{_checked(steps.sequential())}
Each miss is on the low side: it is the time that no named stage has. The five steps of NeMo RL's log that validate and
save take 4.8 to 9.1 s more than their timers name; over all 50 steps of that log the sum is {_log_error():+.1%}.
"""


def _log_error() -> float:
    found = {check.row: check for check in checks(steps.sequential())}
    plain, full = found["nemo_log_45_steps"], found["nemo_log_5_steps_that_validate"]
    return (45 * plain.predicted + 5 * full.predicted) / (45 * plain.reported + 5 * full.reported) - 1


def _one_off() -> str:
    return f"""## 2. One step off: does one constant serve both rows?

`max(G, T) + s`, with G and T as measured in the overlapped run. First each row with the `s` of the other: fitted on one
row, checked on one. Then both with the mean of the two, which is fitted on both and checked on none.

{_checked(steps.one_step_off(), fitted=True)}"""


def _waiting() -> str:
    return f"""## 3. Fully asynchronous: is what does not overlap a constant?

`wait + T + s`, with wait and T as measured and `s` = {steps.async_rest():.2f} s, fitted on the first row and checked on
the nine others, of other sizes, models and settings. The wait is measured in the run itself: this says what a step
consists of, and does not predict it from another run.

{_checked(steps.waiting(), fitted=True)}
The two rows that are furthest off are another task (retool, several turns) and 16 GPUs; their own rests are 1.2 and
1.5 s.
"""


def _changed() -> str:
    return f"""## 4. One stage gets faster

SkyRL, speculative decoding, from the step without it; no constant.

{_checked(steps.one_stage_changed())}
The training stage got slower by 4 s in the same run; who knows the rollout alone is off by that. Accepted tokens a step
are no speed-up: 3.32 of them made the rollout 2.03 times as fast.
"""


def _sync_alone() -> str:
    return f"""## 5. What a synchronous run says about an asynchronous one on the same GPUs

`max(G N/n_G, T N/n_T)` for the printed split: both stages scale linearly; no constant.

{_checked(steps.from_sync_alone())}
All of it misses, on the slow side. With linear scaling no split of N GPUs can be faster than the synchronous step:
`max(G N/n_G, T N/n_T)` is at least `G + T` when `n_G + n_T = N`. Where an asynchronous run was faster, its stages did not
scale so. By the tables: the update took 1.18, 0.99 and 2.4 times as long on 1/2, 1/2 and 1/4 of the GPUs (verl, 7B on 64
and 128, 30B on 128), the old log-probs were not computed at all (7B), and the longest responses, which set the time of a
synchronous rollout whatever the number of GPUs, no longer held up a step. No synchronous table tells these three.
"""


def _signs() -> str:
    rows = []
    for name, reported, outcome in steps.signs():
        told = f"{outcome.predicted:.3f}" if isinstance(outcome, Check) else f"refused: {outcome.reason}"
        right = "yes" if isinstance(outcome, Check) and (outcome.predicted > 1) == (reported > 1) else "—"
        rows.append([name, f"{reported:.3f}", told, right, "yes" if reported >= 1 else "no"])
    rows += [
        [name, f"{reported:.3f}", "refused: no stage is printed", "—", "yes" if reported >= 1 else "no"]
        for name, reported in systems.equal_devices()
    ]
    heads = ["asynchronous row", "reported", "from its own stages", "sign right", "sign right, linear split"]
    return f"""## 6. Faster or slower?

Asynchronous over synchronous step on as many GPUs; above 1 it was slower. "From its own stages" is (wait + T + s) over
the synchronous step, with `s` of section 3, of the other row (one step off), or as printed (marin, whose `s` is the
weight synchronisation). A linear split says "not faster" of every row, see section 5.

{_table(heads, rows)}
Without `s`, `max(G, T)` has the wrong sign for both of marin's: {_naive("marin_async_every_update")} and
{_naive("marin_async_every_second")}. marin says that its runs are not of equal work: the asynchronous ones trained on 8.0
and 9.3 % fewer tokens, so that per token they were slower still.
"""


def _naive(name: str) -> str:
    rows = published().stages
    row, base = rows[name], rows["marin_sync"].need("core_s")
    return f"{(row.need('train_s') + row.need('wait_s')) / base:.2f}"


def _devices() -> str:
    return f"""## 7. As many GPU-seconds?

NeMo RL's page prints no stages. What remains is the step of the smallest on-policy row of the same model, times its GPUs
over the row's GPUs: overlap brings nothing, scaling costs nothing; no constant.

{_checked(systems.device_seconds())}
On-policy rows on twice the GPUs are {_larger()} slower than that, which is what scaling a synchronous loop cost. The
asynchronous rows lie on both sides. The responses of Llama3.1-8B are 6.5 and 10.2 % longer in the 1-off runs, so that the
gain there is larger by as much. Suspect, and used all the same: {_suspects()}.
"""


def _larger() -> str:
    errors = [-check.error for check in checks(systems.device_seconds()) if "on-policy" in check.row]
    slower = [1 / (1 - error) - 1 for error in errors]
    return f"{min(slower):.0%} to {max(slower):.0%}"


def _suspects() -> str:
    used = {check.row for check in checks(systems.device_seconds())}
    return "; ".join(f"{row.name} ({row.suspect})" for row in published().nemo if row.suspect and row.name in used)


def _sweep() -> str:
    swept = {(one.sigma, one.budget): one for one in sweep.staleness_sweep()}
    rows = []
    for budget, name in sweep.BUDGETS.items():
        row = published().stages[name]
        waits = [swept[sigma, budget].wait for sigma in sweep.SIGMAS]
        periods = [swept[sigma, budget].step for sigma in sweep.SIGMAS]
        error = "it is fitted here" if not budget else f"{sum(periods) / len(periods) / row.need('step') - 1:+.1%}"
        shown = [f"{value:.1f}" for value in (*waits, row.need("wait"), *periods, row.need("step"))]
        rows.append([f"{budget:g}", *shown, error])
    spread = [f"spread {sigma:g}" for sigma in sweep.SIGMAS]
    waited, stepped = [f"wait, {one}" for one in spread], [f"step, {one}" for one in spread]
    heads = ["budget f", *waited, "reported", *stepped, "reported", "error of the step"]
    return f"""## 8. The simulator: what a larger staleness budget brings

verl's sweep of `staleness_threshold` on 128 GPUs, in simulated seconds of a step. One constant, the engine's speed, is
fitted on `f = 0` and checked on three rows. The time of an update is that of `f = 0` in every row. The lengths of the
responses are not published: lognormal, with two assumed spreads (standard deviation of the logarithm).

{_table(heads, rows)}
The shape holds: the wait falls as the budget grows, by less for each further tenth. The amount does not: reported, most
of the gain comes with the first tenth. verl's budget is for one version and opens anew at each publication, so that with
`f = 0` the longest responses end each step alone, and the first tenth takes that away. The simulator bounds what is open
by whole batches at any time, and has no such end of a step to remove. Its update does not get slower with `f` either,
as the reported one does (98.8 to 113.2 s).
"""


def _queues() -> str:
    heads = ["split", "reported queue", "rho", "trainer starves", "depth / limit", "closed", "trainer waits"]
    rows = [
        [
            one.name,
            one.reported,
            f"{one.rho:.2f}",
            f"{one.starving:.0%}",
            f"{one.depth:.2f}",
            f"{one.closed:.0%}",
            f"{one.waiting:.0%}",
        ]
        for one in splits.queues()
    ]
    moved, reported = splits.best_moved(), published().splits[1]["dynamic_over"]
    return f"""## 9. Which queue drains, which fills?

verl's page on moving GPUs between rollout and training prints times relative to each other. From the two times, with
linear rates, a GPU that rolls out makes {splits.rate_ratio():.3f} of what one that trains takes: fitted on two times,
checked on the two queues, by formula (rho, starving) and in the simulator (the rest).

{_table(heads, rows)}
The same rates say that a schedule that moves GPUs takes at least {moved:.2f} of the time of 24 + 8; reported is
{reported:g}.
"""


def _gains() -> str:
    rows = []
    sources = published().sources
    for gain in published().gains:
        most, with_tail = systems.most_from_overlap(gain), systems.explained(gain)
        if gain["gain"] <= most:
            told = "possible from overlap"
        elif gain["gain"] <= with_tail:
            told = f"with the printed gain of {gain['tail']:g} from the tail"
        else:
            told = f"a further {gain['gain'] / with_tail:.2f} has to come from elsewhere"
        rows.append([gain["id"], f"{gain['gain']:g}", f"{most:.2f}", told, sources[gain["source"]]["where"]])
    return f"""## 10. Gains that were claimed

Overlap of two stages brings at most 2, and at most `1 / max(g, 1 - g)` where the rollout's share g is printed. Nothing
here is predicted: what is above needs a shorter tail, less work, or another engine.

{_table(["claim", "times as fast", "overlap brings at most", "the rest", "source"], rows)}"""


def refused_rows() -> list[Refusal]:
    """Every row about which something is not predicted, once."""
    asked = [steps.sequential, steps.waiting, steps.from_sync_alone, systems.device_seconds]
    found = [refusal for predict in asked for refusal in refusals(predict())]
    wrong = [Refusal(row.name, row.wrong) for row in (*published().stages.values(), *published().nemo) if row.wrong]
    return list(dict.fromkeys([*found, *wrong]))


def _refused() -> str:
    rows = [[refusal.row, refusal.reason] for refusal in refused_rows()]
    return f"""## 11. Refused

{_table(["row", "reason"], rows)}
A contradiction says something about the row, not about the system: a mean over other steps, a cell that was not updated
or a unit is the likely cause. See also [docs/audit.md](audit.md).
"""


def _sources(table: Published) -> str:
    rows = [[source["where"], source["at"]] for source in table.sources.values()]
    return f"""## Sources

Read on 2026-11-29; the rows that each gave carry its key in `harness/validate/{FILE.name}`.

{_table(["where", "at"], rows)}"""


if __name__ == "__main__":
    PAGE.write_text(validation_page(), encoding="utf-8")
