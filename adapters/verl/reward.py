"""The bundle's verifier as verl's custom reward function (`reward.custom_reward_function`), loaded by its path."""

from typing import Any

from adapters.verl.records import FIELD
from adapters.verl.scoring import verdict_on
from harness.errors import SystemFailure


def compute_score(
    data_source: str,  # noqa: ARG001  (verl's signature)
    solution_str: str,
    ground_truth: str,  # noqa: ARG001
    extra_info: dict[str, Any],
    **_: Any,
) -> dict[str, Any]:
    """The verdict on one completion; its times and components ride along.

    Raises:
        SystemFailure: no verdict could be reached. verl then gives the completion up; it never sees a reward of 0.
    """
    verdict = verdict_on(extra_info["prompt_id"], solution_str, extra_info[FIELD]["trace_id"])
    if verdict.status != "ok" or verdict.reward_total is None:
        raise SystemFailure(f"verifier error: {verdict.detail}")
    return {
        "score": verdict.reward_total,
        "rlaxes_components": verdict.components,
        "rlaxes_text": solution_str,
        "t_verify_start": verdict.t_start,
        "t_verify_end": verdict.t_end,
    }
