"""docs/measures.md from the catalogue: `python -m harness.report.measures_page`. A test holds the page to the code."""

from itertools import groupby
from pathlib import Path

from harness.measure.api import catalogue

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measures.md"
HEAD = """# What does each figure mean?

Made from the classes in `harness/measure/figures/` by `python -m harness.report.measures_page`; each figure has one
definition, here and in the report. "From" names the step of the module that the definition rests on. Times are seconds,
sizes bytes, rates per second; a figure that could not be measured is null with a reason.

"After warm-up" is after the first `task.warmup_steps` optimizer steps, and as many more as it takes to drop whole
generated batches (`warmup_steps_dropped`). Every step stays in the ledger and in the report's series, marked. A rule
says how many *should* be dropped (`warmup_steps_by_rule`), and where it says more than were, or that the run is never
steady, the report says so; it moves no figure. A cut that each repeat chose for itself would leave the two sides of a
pair with other steps, so with other work, and would choose by the very times that are compared; and in this work
steps also drift because the policy learns to write longer or shorter completions, which no cut removes.
"""


def measures_page() -> str:
    """The page as Markdown: one table a topic."""
    parts = [HEAD]
    for topic, measures in groupby(catalogue(), key=lambda measure: measure.topic):
        parts += [
            f"\n## {topic.capitalize()}\n",
            "| tag | unit | better | definition | from |",
            "|---|---|---|---|---|",
        ]
        for m in measures:
            better = {"none": ""}.get(m.direction, m.direction)
            definition = m.definition.replace("|", "\\|")
            parts.append(
                f"| `{m.tag}` | {m.unit} | {better} | **{m.title}.** {definition} | {m.source} |".replace(
                    "||", "\\|\\|"
                )
            )
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(measures_page(), encoding="utf-8")
