"""The page's sections on the simulator, queues and claims."""

from harness.validate import splits, sweep, systems
from harness.validate.markdown import percent, table
from harness.validate.table import published


def sweep_section() -> str:
    """A section."""
    swept = {(one.sigma, one.budget): one for one in sweep.staleness_sweep()}
    rows = []
    for budget, name in sweep.BUDGETS.items():
        row = published().stages[name]
        waits = [swept[sigma, budget].wait for sigma in sweep.SIGMAS]
        periods = [swept[sigma, budget].step for sigma in sweep.SIGMAS]
        error = "it is fitted here" if not budget else percent(sum(periods) / len(periods) / row.need("step") - 1)
        shown = [f"{value:.1f}" for value in (*waits, row.need("wait"), *periods, row.need("step"))]
        rows.append([f"{budget:g}", *shown, error])
    spread = [f"spread {sigma:g}" for sigma in sweep.SIGMAS]
    waited, stepped = [f"wait, {one}" for one in spread], [f"step, {one}" for one in spread]
    heads = ["budget f", *waited, "reported", *stepped, "reported", "error of the step"]
    return f"""## 8. The simulator: what a larger staleness budget brings

verl's sweep of `staleness_threshold` on 128 GPUs, in simulated seconds of a step. One constant, the engine's speed, is
fitted on `f = 0` and checked on three rows. The time of an update is that of `f = 0` in every row. The lengths of the
responses are not published: lognormal, with two assumed spreads (standard deviation of the logarithm).

{table(heads, rows)}
The shape holds: the wait falls as the budget grows, by less for each further tenth, whatever the spread. The amount
does not: reported, most of the gain comes with the first tenth. The likely cause: verl's budget is for one version and
opens anew at each publication, so that with `f = 0` the longest responses end each step alone, and the first tenth
takes that away. The simulator bounds what is open by whole batches at any time, and has no such end of a step to
remove; a budget that opens anew is not among its settings. Nor does its update get slower with `f`, as the reported
one does (98.8 to 113.2 s).
"""


def queues_section() -> str:
    """A section."""
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

{table(heads, rows)}
The same rates say that a schedule that moves GPUs takes at least {moved:.2f} of the time of 24 + 8; reported is
{reported:g}.
"""


def gains_section() -> str:
    """A section."""
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

{table(["claim", "times as fast", "overlap brings at most", "the rest", "source"], rows)}"""
