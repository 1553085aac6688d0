"""What one record of a rollout dump says of its samples, for each framework that dumps them as JSON lines."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.ingest.dump import Sample
from harness.ingest.flat import whole

Record = dict[str, Any]
BY_VERSION = "by version of the weights"


@dataclass(frozen=True)
class Shape:
    """The dump of one framework: the keys that tell it, its samples, the key of the step, where a record has it, and
    what else tells its numbers from others of that step."""

    framework: str
    keys: frozenset[str]
    samples: Callable[[Record], Iterator[Sample]]
    step: str | None = None
    scope: str = ""


def _verl(record: Record) -> Iterator[Sample]:
    """`trainer.rollout_data_dir/{step}.jsonl`. A uid is `{prompt}_{rollout}_{output}` (verl/trainer/ppo/v1)."""
    prompt, completion = _text(record["input"]), _text(record["output"])
    parts = str(record.get("uid", "")).rsplit("_", 2)
    group = parts[0] if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit() else prompt
    yield _of_text(group, prompt, completion, number(record["score"]))


def _skyrl(record: Record) -> Iterator[Sample]:
    """`dumped_evals/global_step_{step}_evals/*.jsonl`; a score may be one of each token (train/utils/trainer_utils.py).
    Its dumps of training batches are pickles, which nobody should open."""
    prompt, score = _text(record["input_prompt"]), record["score"]
    if isinstance(score, list):
        parts = [number(part) for part in score]
        score = None if None in parts else sum(part for part in parts if part is not None)
    yield _of_text(prompt, prompt, _text(record["output_response"]), number(score))


def _areal(record: Record) -> Iterator[Sample]:
    """`rollout/{version}/{task}.jsonl`, by the version of the weights that sampled the last token, which stands here
    for the step. What was dumped need not have been trained on. Its lengths are AReaL's own numbers
    (infra/workflow_executor.py)."""
    prompt = _text(record["prompt"])
    yield _of_text(str(record["task_id"]), prompt, _text(record["completion"]), number(record.get("reward")))


def _nemo(record: Record) -> Iterator[Sample]:
    """`train_data_step{step}.jsonl`: each field is a list of one, padded to the batch; the tokens before the first that
    the loss counts are the prompt (algorithms/grpo.py, utils/logger.py log_batched_dict_as_jsonl)."""
    length = whole(_only(record["input_lengths"])) or 0
    ids, mask = (_numbers(_only(record[key]))[:length] for key in ("token_ids", "token_loss_mask"))
    reward = number(_only(record.get("rewards")))
    if len(ids) != len(mask) or not ids:
        yield Sample(None, None, None, reward)
        return
    first = next((at for at, counted in enumerate(mask) if counted), len(ids))
    sampled = _counted(mask)
    yield Sample(repr(ids[:first]), repr(ids), sampled == 0, reward, sampled)


def _prime(record: Record) -> Iterator[Sample]:
    """`rollouts/step_{step}/{train,eval}/{all,effective}/traces.jsonl`: an episode with a trace for each agent; a
    reward is the weighted sum of the named ones (verifiers.v1 at 0.4: Episode, Trace, MessageNode)."""
    group = record.get("group")
    prompt = str(group["id"]) if isinstance(group, dict) and "id" in group else None
    for trace in record["traces"]:
        nodes = [node for node in trace["nodes"] if isinstance(node, dict)]
        sampled = [node for node in nodes if node.get("sampled")]
        text = json.dumps([node.get("message") for node in nodes])
        masks = [_numbers(node.get("mask") or []) for node in sampled]
        tokens = sum(map(_counted, masks)) if masks and all(masks) else None
        yield Sample(prompt, text, not sampled, _weighted(trace.get("rewards")), tokens)


def _weighted(rewards: Any) -> float | None:
    if not isinstance(rewards, dict) or not rewards:
        return None
    parts = [(number(part["score"]), number(part.get("weight", 1.0))) for part in rewards.values() if part]
    known = [score * weight for score, weight in parts if score is not None and weight is not None]
    return sum(known) if len(known) == len(rewards) else None


SHAPES = (
    Shape("verl", frozenset({"input", "output", "score", "step"}), _verl, "step"),
    Shape("skyrl", frozenset({"input_prompt", "output_response", "score", "env_class"}), _skyrl),
    Shape(
        "areal",
        frozenset({"task_id", "seqlen", "prompt_len", "tail_version", "completion"}),
        _areal,
        "tail_version",
        BY_VERSION,
    ),
    Shape("nemo_rl", frozenset({"token_ids", "token_loss_mask", "input_lengths", "sample_loss_mask"}), _nemo),
    Shape("prime_rl", frozenset({"env", "task", "traces", "ok"}), _prime),
)


def _of_text(group: str, prompt: str, completion: str, reward: float | None) -> Sample:
    return Sample(group, f"{prompt}\0{completion}", not completion.strip(), reward)


def _text(value: Any) -> str:
    """A prompt may be a list of messages."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if type(value) not in (int, float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _only(value: Any) -> Any:
    """What a list of one has in it."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _numbers(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _counted(mask: list[Any]) -> int:
    return sum(1 for counted in mask if counted)
