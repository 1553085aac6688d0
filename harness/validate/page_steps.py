"""The page's sections on closed formulas."""

from harness.validate import steps, systems
from harness.validate.markdown import checked, table
from harness.validate.outcome import Outcome, Refusal, checks
from harness.validate.table import published


def sums() -> str:
    """A section."""
    return f"""## 1. Do the stages add up to the step?

`C_seq = G + T`, over all printed stages; no constant. Of `{steps.ASYNC_BLOCK}`, an asynchronous step, the trainer's
wait stands for G.

{checked(steps.sequential())}
Each miss is on the low side: it is the time that no printed stage has, 33 s in both of SkyRL's rows. The five steps of
NeMo RL's log that validate and save take 4.8 to 9.1 s more than their timers name; over all 50 steps of that log the
sum is {_log_error():+.1%}.
"""


def _log_error() -> float:
    found = {check.row: check for check in checks(steps.sequential())}
    plain, full = found["nemo_log_45_steps"], found["nemo_log_5_steps_that_validate"]
    return (45 * plain.predicted + 5 * full.predicted) / (45 * plain.reported + 5 * full.reported) - 1


def one_off() -> str:
    """A section."""
    return f"""## 2. One step off: does one constant serve both rows?

`max(G, T) + s`, with G and T as measured in the overlapped run. First each row with the `s` of the other: fitted on one
row, checked on one. Then both with the mean of the two, which is fitted on both and checked on none.

{checked(steps.one_step_off(), fitted=True)}"""


def waiting() -> str:
    """A section."""
    return f"""## 3. Fully asynchronous: is what does not overlap a constant?

`wait + T + s`, with wait and T as measured and `s` = {steps.async_rest():.2f} s, fitted on the first row and checked on
the nine others, of other sizes, models and settings. The wait is measured in the run itself: this says what a step
consists of, and does not predict it from another run.

{checked(steps.waiting(), fitted=True)}
The two rows that are furthest off are another task (retool, several turns) and 16 GPUs; their own rests are 1.2 and
1.5 s.
"""


def changed() -> str:
    """A section."""
    return f"""## 4. One stage gets faster

SkyRL, speculative decoding, from the step without it: its rollout, or its rollout and its training, in place of those
of the baseline, and the baseline's 33.3 s that no printed stage has; no constant.

{checked(steps.one_stage_changed())}
The training stage got slower by 4 s in the same run; who knows the rollout alone is off by that. Accepted tokens a step
are no speed-up: 3.32 of them made the rollout 2.03 times as fast.
"""


def sync_alone() -> str:
    """A section."""
    return f"""## 5. What a synchronous run says about an asynchronous one on the same GPUs

`max(G N/n_G, T N/n_T)` for the printed split: both stages scale linearly; no constant.

{checked(steps.from_sync_alone())}
All of it misses, on the slow side. With linear scaling no split of N GPUs can be faster than the synchronous step:
`max(G N/n_G, T N/n_T)` is at least `G + T` when `n_G + n_T = N`. Where an asynchronous run was faster, its stages did
not scale so. By the tables, an update took {_updates()} times as long on 1/2, 1/2 and 1/4 of the
GPUs (verl, 7B on 64 and 128, 30B on 128) and the old log-probs were not computed at all; and the longest responses,
which set the time of a synchronous rollout whatever the number of GPUs, no longer held up a step. No synchronous table
tells these three.
"""


def _updates() -> str:
    found = [(published().stages[sync], published().stages[name]) for sync, name in steps.PAIRS[1:4]]
    return ", ".join(f"{row.need('update_actor') / sync.need('update_actor'):.2f}" for sync, row in found)


def signs() -> str:
    """A section."""
    rows = [_sign(name, reported, outcome) for name, reported, outcome in steps.signs()]
    unprinted = "no stage is printed"
    rows += [_sign(name, reported, Refusal(name, unprinted)) for name, reported in systems.equal_devices()]
    heads = ["asynchronous row", "reported", "from its own stages", "sign", "sign of a linear split"]
    return f"""## 6. Faster or slower?

Asynchronous over synchronous step on as many GPUs; above 1 it was slower. "From its own stages" is (wait + T + s) over
the synchronous step, with `s` of section 3, of the other row (one step off), or as printed (marin, whose `s` is the
weight synchronisation). A linear split says "not faster" of every row, see section 5, so that it is right about the
slower runs and about no other.

{table(heads, rows)}
Without `s`, `max(G, T)` has the wrong sign for both of marin's: {_naive("marin_async_every_update")} and
{_naive("marin_async_every_second")}. marin says that its runs are not of equal work: the asynchronous ones trained on
{_fewer("marin_async_every_update")} and {_fewer("marin_async_every_second")} fewer tokens, so that per token they were
slower still.
"""


def _sign(name: str, reported: float, outcome: Outcome) -> list[str]:
    slower = reported > 1
    if isinstance(outcome, Refusal):
        wrong = name in published().stages and published().stages[name].wrong
        return [name, f"{reported:.3f}", f"refused: {outcome.reason}", "—", "—" if wrong else _right(slower)]
    fitted = name == outcome.fitted
    told = f"{outcome.predicted:.3f}" + (", fitted here" if fitted else "")
    return [name, f"{reported:.3f}", told, "—" if fitted else _right((outcome.predicted > 1) == slower), _right(slower)]


def _right(right: bool) -> str:
    return "right" if right else "wrong"


def _fewer(name: str) -> str:
    rows = published().stages
    return f"{1 - rows[name].need('tokens') / rows['marin_sync'].need('tokens'):.1%}"


def _naive(name: str) -> str:
    rows = published().stages
    row, base = rows[name], rows["marin_sync"].need("core_s")
    return f"{(row.need('train_s') + row.need('wait_s')) / base:.2f}"


def devices() -> str:
    """A section."""
    return f"""## 7. As many GPU-seconds?

NeMo RL's page prints no stages. What remains is the step of the smallest on-policy row of the same model, times its
GPUs over the row's GPUs: overlap brings nothing, scaling costs nothing; no constant.

{checked(systems.device_seconds())}
On-policy rows on twice the GPUs are {_larger()} slower than that, which is what scaling a synchronous loop cost. The
asynchronous rows lie on both sides. The responses of Llama3.1-8B are 6.5 and 10.2 % longer in the 1-off runs, so that
the gain there is larger by as much. Suspect, and used all the same: {_suspects()}.
"""


def _larger() -> str:
    errors = [-check.error for check in checks(systems.device_seconds()) if "on-policy" in check.row]
    slower = [1 / (1 - error) - 1 for error in errors]
    return f"{min(slower):.0%} to {max(slower):.0%}"


def _suspects() -> str:
    used = {check.row for check in checks(systems.device_seconds())}
    return "; ".join(f"{row.name} ({row.suspect})" for row in published().nemo if row.suspect and row.name in used)
