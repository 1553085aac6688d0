"""Where the adapter holds on to TRL, as data, and the check that the installed version still has each place."""

import ast
import importlib
import inspect
import textwrap
from dataclasses import dataclass

from harness.probe.hooks import HookDrift, HookPoint, verify_hooks

TRAINER = "trl.trainer.grpo_trainer:GRPOTrainer"
GENERATION = "transformers.generation.utils:GenerationMixin"
VLLM = "trl.generation.vllm_generation:VLLMGeneration"


@dataclass(frozen=True)
class Returned:
    """What a private method must return: `fields` values, in this order (checked in its source and at each call)."""

    target: str
    fields: tuple[str, ...]


GENERATE = Returned(
    f"{TRAINER}._generate",
    (
        "prompt_ids",
        "completion_ids",
        "tool_mask",
        "completions",
        "logprobs",
        "extra_fields",
        "images",
        "tool_images",
    ),
)
LOGPROBS = Returned(f"{TRAINER}._get_per_token_logps_and_entropies", ("logps", "entropies", "aux_loss"))
SINGLE_TURN = Returned(f"{TRAINER}._generate_single_turn", ("completion_ids", "logprobs"))
TOKENIZE = Returned(f"{TRAINER}._tokenize_prompts", ("prompt_ids", "images", "multimodal_fields"))
RETURNS = (GENERATE, LOGPROBS, SINGLE_TURN, TOKENIZE)

SCORED_KEYS = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch")
"""Keys of the dictionary that `_generate_and_score_completions` returns and the records are read from."""

HOOKS = (
    HookPoint(
        f"{TRAINER}.get_batch_samples",
        "prompt_prep",
        "the first work of an optimizer step: rows come from the data loader",
        ("epoch_iterator", "num_batches", "device"),
    ),
    HookPoint(f"{TRAINER}.training_step", "forward_backward", "its end is the end of the backward pass", ("inputs",)),
    HookPoint(f"{TRAINER}._prepare_inputs", "batch_assembly", "shuffles and splits a batch", ("generation_batch",)),
    HookPoint(f"{TRAINER}._generate", "tokens", "prompt and completion ids, mask, texts, log-probs", ("prompts",)),
    HookPoint(f"{TRAINER}._generate_and_score_completions", "tokens", "advantages, mask, old log-probs", ("inputs",)),
    HookPoint(f"{TRAINER}._calculate_rewards", "verifier", "brackets the reward functions", ("completions",)),
    HookPoint(
        f"{TRAINER}._get_per_token_logps_and_entropies",
        "logprob_recompute",
        "trainer log-probs with a gradient; old and reference log-probs without one",
        ("model",),
    ),
    HookPoint(f"{TRAINER}.compute_loss", "forward_backward", "begins the forward pass", ("model", "inputs")),
    HookPoint(f"{TRAINER}._compute_loss", "forward_backward", "the rows that a step consumes", ("model", "inputs")),
    HookPoint(f"{TRAINER}._clip_grad_norm", "optimizer_step", "begins the optimizer step", ("model",)),
    HookPoint(f"{TRAINER}._get_grad_norm", "optimizer_step", "begins it where nothing is clipped", ("model",)),
    HookPoint("transformers.trainer_callback:TrainerCallback.on_step_end", "optimizer_step", "ends the optimizer step"),
    HookPoint(f"{TRAINER}._save_checkpoint", "checkpoint", "brackets the writing of a checkpoint", ("model", "trial")),
    HookPoint("transformers.trainer_callback:TrainerCallback.on_save", "checkpoint", "the checkpoint is whole"),
    HookPoint(f"{TRAINER}._load_from_checkpoint", "restore", "begins to load a checkpoint"),
    HookPoint(f"{TRAINER}._load_optimizer_and_scheduler", "restore", "the last but the random states", ("checkpoint",)),
    HookPoint(f"{TRAINER}._load_rng_state", "restore", "the last that is loaded", ("checkpoint",)),
    HookPoint("transformers.trainer_callback:TrainerCallback.on_log", "updates", "loss, gradient norm, learning rate"),
    HookPoint(f"{GENERATION}.generate", "prefill", "begins prefill, ends decode", ("stopping_criteria",)),
    HookPoint(
        f"{GENERATION}._get_logits_processor",
        "decode",
        "its list is extended by a recorder of the processed scores, after all warpers",
    ),
    HookPoint("transformers:StoppingCriteriaList", "decode", "sees each sampled token"),
    HookPoint(f"{VLLM}.generate", "generate", "brackets generation where vLLM does it", ("prompts", "profiler")),
    HookPoint(f"{VLLM}.sync_weights", "weight_sync", "pushes weights into vLLM"),
    HookPoint("trl.trainer.utils:shuffle_sequence_dict", "batch_assembly", "carries the row numbers", ("seq_dict",)),
    HookPoint("trl.trainer.utils:split_tensor_dict", "batch_assembly", "carries the row numbers", ("num_chunks",)),
)


def hook_drift() -> list[str]:
    """One message for each place where the installed packages no longer are what the adapter holds on to."""
    messages = verify_hooks(HOOKS)
    return messages or [message for returned in RETURNS if (message := _returns_drift(returned))]


def check_returned(returned: Returned, values: object) -> None:
    """Raise HookDrift if a private method returned anything but a tuple of the expected length."""
    if not isinstance(values, tuple) or len(values) != len(returned.fields):
        found = f"{len(values)} values" if isinstance(values, tuple) else type(values).__name__
        raise HookDrift(f"hook drift: {returned.target} returned {found}, not {returned.fields}")


def check_scored(scored: dict[str, object]) -> None:
    """Raise HookDrift if the dictionary of a scored batch lacks a key that records are read from."""
    if missing := [key for key in SCORED_KEYS if key not in scored]:
        raise HookDrift(f"hook drift: {TRAINER}._generate_and_score_completions returned no {missing}")


def _returns_drift(returned: Returned) -> str | None:
    """Compare the tuples that a method's source returns with the names that we unpack. One that hands on what another
    returns is checked at each call."""
    module, _, qualified = returned.target.partition(":")
    found: object = importlib.import_module(module)
    for name in qualified.split("."):
        found = getattr(found, name)
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(found)))  # type: ignore[arg-type]
    tuples = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Return)]
    lengths = {len(value.elts) for value in tuples if isinstance(value, ast.Tuple)}
    if lengths <= {len(returned.fields)}:
        return None
    return f"hook drift: {returned.target} returns {sorted(lengths)} values, not {returned.fields}"
