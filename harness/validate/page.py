"""docs/plan_validation.md: `python -m harness.validate.page`. A test holds the page to the code."""

from collections.abc import Callable
from pathlib import Path

from harness.validate import page_simulated, page_steps, steps, systems
from harness.validate.markdown import table
from harness.validate.outcome import Outcome, Refusal, checks, refusals
from harness.validate.table import FILE, published

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plan_validation.md"
HEAD = """# What was published, beside what the plan says

Made by `python -m harness.validate.page` from `harness/validate/published.yaml`, which holds every number below as its
source printed it. None of it is of this project. "Error" is predicted over reported, less one. A row that fails a rule
of `rlaxes audit` is used for nothing, and what a row does not print is not guessed: both are refused, with the reason.
Where a constant was fitted, the table says on which row; every other prediction has none.
"""


def validation_page() -> str:
    """The page as Markdown."""
    parts = [HEAD, _summary(), *(section() for section in SECTIONS), _refused(), _sources()]
    return "\n".join(parts)


SECTIONS = (
    page_steps.sums,
    page_steps.one_off,
    page_steps.waiting,
    page_steps.changed,
    page_steps.sync_alone,
    page_steps.signs,
    page_steps.devices,
    page_simulated.sweep_section,
    page_simulated.queues_section,
    page_simulated.gains_section,
)


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
    return "## In short\n\n" + table(heads, rows) + SHORT


SHORT = """
Stages that were measured in a run make up its step but for what none of them names: up to 13 % here. Of overlapped
runs of one page that rest is a constant, to about 1 %. What a synchronous run says about an asynchronous one on as many
GPUs does not hold: linear scaling is wrong by up to 2.5 times, always on the slow side. So `plan pipeline` gives a
split with the warning to measure both stages again at it. Sections 8 and 9 are the simulator's: its shapes and queues
hold; its steps are off by up to 26 %, and the waits in them by up to twice.
"""


def refused_rows() -> list[Refusal]:
    """Every row about which something is not predicted, once."""
    asked = [steps.sequential, steps.waiting, steps.from_sync_alone, systems.device_seconds]
    found = [refusal for predict in asked for refusal in refusals(predict())]
    wrong = [Refusal(row.name, row.wrong) for row in (*published().stages.values(), *published().nemo) if row.wrong]
    return list(dict.fromkeys([*found, *wrong]))


def _refused() -> str:
    rows = [[refusal.row, refusal.reason] for refusal in refused_rows()]
    return f"""## 11. Refused

{table(["row", "reason"], rows)}
A contradiction says something about the row, not about the system: a mean over other steps, a cell that was not updated
or a unit is the likely cause. See also [docs/audit.md](audit.md).
"""


def _sources() -> str:
    rows = [[source["where"], source["at"]] for source in published().sources.values()]
    return f"""## Sources

Read on 2026-11-29; the rows that each gave carry its key in `harness/validate/{FILE.name}`.

{table(["where", "at"], rows)}"""


if __name__ == "__main__":
    PAGE.write_text(validation_page(), encoding="utf-8")
