"""By what evidence a published figure stands. Figures of two grades are never in one column."""

from typing import Any, Literal, get_args

Evidence = Literal["measured here", "replayed from logs", "simulated", "author-reported", "declared"]
EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)
"""From the strongest word to the weakest; the order says what a figure rests on, and ranks no system."""
MEANINGS: dict[Evidence, str] = {
    "measured here": "counted by rlaxes from the ledgers of cells that it ran itself",
    "replayed from logs": "the framework's own word, read by rlaxes from logs that were written elsewhere",
    "simulated": "came out of rlaxes' model of a loop, calibrated on measured cells",
    "author-reported": "printed by others about their own run; rlaxes saw neither the run nor its logs",
    "declared": "said by a framework's source or documents of itself; no number stands behind it",
}


def evidence_of_report(report: dict[str, Any]) -> Evidence:
    """The grade of a published `report.json`: all its figures are of one grade.

    Args:
        report: its content; one from before rlaxes read foreign runs has no `ingested`.
    """
    if any((said.get("capabilities") or {}).get("simulated") for said in (report.get("adapters") or {}).values()):
        return "simulated"
    return "replayed from logs" if report.get("ingested") else "measured here"
