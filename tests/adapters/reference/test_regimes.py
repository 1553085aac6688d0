from pathlib import Path
from typing import Any

import pytest

from adapters.reference.regimes import refusal
from tests.adapters.reference import cells


@pytest.mark.parametrize(
    ("options", "task", "layout", "word"),
    [
        ({"logprobs": "guess"}, {}, "colocated_sync", "regime"),
        ({"staleness": {"correction": "halve"}}, {}, "colocated_sync", "correction"),
        ({"staleness": {"level": "word"}}, {}, "colocated_sync", "level"),
        ({"staleness": {"cap": 0.0}}, {}, "colocated_sync", "capped"),
        ({"publication": "mail"}, {}, "disaggregated_sync", "publication"),
        ({"publication": "adapter"}, {}, "disaggregated_sync", "lora.rank"),
        ({"versions": "token"}, {}, "disaggregated_async", "engine=vllm"),
        (
            {"versions": "token", "engine": "vllm", "publication": "adapter", "lora": {"rank": 4}},
            {},
            "disaggregated_async",
            "publication=full",
        ),
        ({"pools": {"trainer_ranks": 2}}, {}, "colocated_sync", "one process"),
        # A truncated distribution has no mass where the trainer's policy has some.
        ({"logprobs": "engine"}, {"top_p": 0.9}, "disaggregated_sync", "top_p"),
        ({"staleness": {"correction": "clip"}}, {"top_k": 5}, "disaggregated_sync", "top_k"),
        ({"staleness": {"ess_floor": 0.5}}, {"min_p": 0.1}, "disaggregated_sync", "min_p"),
        ({"logprobs": "engine", "staleness": {"ess_floor": 0.5}}, {}, "disaggregated_sync", "ess_floor"),
        ({"logprobs": "unified"}, {}, "disaggregated_sync", "one module"),
        ({"logprobs": "unified", "engine": "vllm"}, {}, "colocated_sync", "one module"),
        ({"logprobs": "unified", "staleness": {"correction": "mask"}}, {}, "colocated_sync", "nothing to do"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(
    tmp_path: Path, options: dict[str, Any], task: dict[str, Any], layout: str, word: str
) -> None:
    assert word in (refusal(cells.settings(tmp_path, **_changes(options, task, layout))) or "")


@pytest.mark.parametrize(
    ("options", "task", "layout"),
    [
        ({"versions": "token", "engine": "vllm"}, {}, "disaggregated_async"),
        ({"publication": "adapter", "lora": {"rank": 4}, "engine": "vllm"}, {}, "disaggregated_sync"),
        ({}, {"top_p": 0.9, "top_k": 5, "min_p": 0.1}, "colocated_sync"),
        ({"logprobs": "unified"}, {"temperature": 0.7}, "colocated_overlap"),
        ({"logprobs": "engine", "staleness": {"correction": "clip", "cap": float("inf")}}, {}, "disaggregated_async"),
        ({"staleness": {"correction": "mask", "level": "sequence", "ess_floor": 0.5}}, {}, "disaggregated_async"),
        ({"publication": "adapter", "lora": {"rank": 4}, "pools": {"trainer_ranks": 2}}, {}, "disaggregated_sync"),
    ],
)
def test_what_does_is_not(tmp_path: Path, options: dict[str, Any], task: dict[str, Any], layout: str) -> None:
    assert refusal(cells.settings(tmp_path, **_changes(options, task, layout))) is None


def _changes(options: dict[str, Any], task: dict[str, Any], layout: str) -> dict[str, Any]:
    return {"adapter_options": options, "task": task, "layout": {"name": layout, "lag_bound": 0}}
