"""The axes of the framework map (module, steps 12.1.3 and 12.5.4), and what an adapter may say on each.

An adapter declares on an axis a sentence, and values from the axis's closed vocabulary, by which a program can filter.
A value that is not there was looked for and not found, unless it is `unread`: nobody has looked, and it is not known.
"""

import datetime
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TEXTS = ("declared", "source", "date")
ENTRY_KEYS = {*TEXTS, "values", "unread", "version", "was"}
WAS_KEYS = {*TEXTS, "version", "until"}


@dataclass(frozen=True)
class AxisKind:
    """One axis: its title, what it asks of a framework, and its vocabulary with what each value means."""

    title: str
    asks: str
    values: Mapping[str, str]


AXES: dict[str, AxisKind] = {
    "nodes": AxisKind(
        "one node or many",
        "does one run span machines, and what starts it there?",
        {
            "one_node": "a run fits one machine",
            "many_nodes": "a run may span machines",
            "ray": "started on them by Ray",
            "torchrun": "started on them by torchrun, accelerate or srun, a process a device",
            "slurm": "it comes with Slurm scripts, or submits jobs itself",
            "kubernetes": "it comes with Kubernetes manifests or starts pods itself",
        },
    ),
    "adapters_lora": AxisKind(
        "full fine-tuning or LoRA",
        "which weights are trained, and in which form do they reach the engine?",
        {
            "full": "all weights are trained",
            "lora": "LoRA adapters are trained",
            "qlora": "LoRA adapters on a quantised base are trained",
            "merged_published": "with LoRA, merged weights go to the engine",
            "adapter_published": "with LoRA, the adapter alone goes to the engine",
        },
    ),
    "multi_turn": AxisKind(
        "one-shot or multi-turn",
        "what may happen between a prompt and its reward?",
        {
            "one_shot": "a prompt, a completion, a reward",
            "multi_turn": "an environment answers, and the policy goes on",
            "tools": "the policy calls tools",
            "agents": "an agent program of the user's own asks the engine over an API",
        },
    ),
    "placement": AxisKind(
        "placement",
        "do generation and training share devices?",
        {
            "colocated": "they take turns on the same devices",
            "disaggregated": "each has devices of its own",
            "hybrid": "a device may change sides during a run",
            "external": "engines that somebody else started may be used",
        },
    ),
    "synchrony": AxisKind(
        "synchrony",
        "who waits for whom?",
        {
            "synchronous": "a batch is generated, then trained on; neither goes on beside the other",
            "one_step_off": "the next batch is generated while one is trained on, and no more than that",
            "asynchronous": "generation runs ahead of training, and hands over whole batches",
            "fully_asynchronous": "finished samples or groups stream to the trainer; generation waits for no step",
            "partial_rollout": "a completion under way survives a publication, and may hold tokens of several versions",
        },
    ),
    "lag_bound": AxisKind(
        "allowed lag",
        "what keeps the trained policy near the one that sampled?",
        {
            "own_updates": "synchronous: only a batch's own further updates are ahead of it",
            "fixed_lead": "the schedule: generation is a fixed number of batches ahead",
            "admission": "generation starts nothing that could become older than the bound",
            "drops": "what is older than the bound is dropped",
            "waits": "the trainer waits for samples of the age that it wants",
            "queue_size": "nothing but the room in the queue",
            "unbounded": "nothing",
        },
    ),
    "queue": AxisKind(
        "queue policy",
        "what stands between generation and training?",
        {
            "none": "nothing: a batch is handed over",
            "batches": "a queue of whole batches",
            "groups": "a queue of groups or prompts",
            "samples": "a queue of single samples",
            "bounded": "it has a limit, at which generation waits",
            "oldest_first": "what came first leaves first",
            "by_version": "what leaves next depends on the weights that sampled it",
            "drops_old": "what is too old leaves it untrained",
            "pluggable": "the policy is the user's to replace",
        },
    ),
    "logprob_regime": AxisKind(
        "old log-probs",
        "which policy is in the denominator of the ratio?",
        {
            "ratio_one": "the trained one itself: the ratio is 1 by construction",
            "recomputed": "the trainer's, recomputed before the update",
            "engine": "the engine's own, as sampled",
            "corrected": "a second ratio corrects for what engine and trainer disagree on",
        },
    ),
    "training_backend": AxisKind(
        "training backend",
        "what shards and steps the model?",
        {
            "torch": "plain PyTorch on one device",
            "ddp": "PyTorch DistributedDataParallel",
            "fsdp": "PyTorch FSDP, the first",
            "fsdp2": "PyTorch FSDP2 (fully_shard)",
            "megatron": "Megatron-Core",
            "deepspeed": "DeepSpeed ZeRO",
            "torchtitan": "TorchTitan",
            "automodel": "NeMo AutoModel",
            "veomni": "VeOmni",
            "archon": "AReaL's own, after TorchTitan",
            "jax": "JAX",
        },
    ),
    "rollout_engine": AxisKind(
        "rollout engine",
        "what generates?",
        {
            "transformers": "the trained module by Transformers, or a loop over it",
            "vllm": "vLLM",
            "sglang": "SGLang",
            "tensorrt_llm": "TensorRT-LLM",
            "megatron": "Megatron-Core's inference",
            "dynamo": "NVIDIA Dynamo",
            "jax": "an engine in JAX",
        },
    ),
    "weight_sync": AxisKind(
        "weight publication",
        "how do new weights reach the engine?",
        {
            "same_module": "not at all: the engine is the trained module",
            "in_process": "copied within the process",
            "cuda_ipc": "CUDA IPC handles on the same device",
            "shared_memory": "shared memory of the host",
            "collective": "a broadcast or another collective (NCCL, HCCL, gloo)",
            "rdma": "point to point (NIXL, Mooncake, ...)",
            "filesystem": "files on a disk that both see",
            "object_store": "an object store",
            "http": "tensors in a request",
            "versioned": "a version goes with them",
            "verified": "the receiver proves what it holds",
        },
    ),
    "recovery": AxisKind(
        "recovery",
        "what does a crash cost, and who mends it?",
        {
            "resume": "a run goes on from a checkpoint when it is asked to",
            "resumes_newest": "started again, it finds the newest checkpoint by itself",
            "restarts_itself": "a launcher of its own starts a failed run again",
            "replaces_workers": "a dead engine or worker is replaced within the run",
            "keeps_optimizer": "the optimizer's state is saved",
            "keeps_schedule": "the place in the learning rate's schedule is saved",
            "keeps_step": "step and policy version are saved",
            "keeps_data_position": "the place in the data is saved",
            "keeps_prompt_schedule": "the state of a curriculum or prompt scheduler is saved",
            "keeps_rng": "random states are saved",
            "keeps_queue": "what was generated and waits is saved",
            "keeps_versions": "versions of tokenizer, template and verifier are saved, and compared at a restart",
        },
    ),
    "telemetry": AxisKind(
        "telemetry",
        "what does it write, and of what does it speak?",
        {
            "console": "a line or a table a step on the console",
            "json_lines": "scalars in a file of its own",
            "tensorboard": "TensorBoard",
            "wandb": "Weights & Biases",
            "mlflow": "MLflow",
            "swanlab": "SwanLab",
            "trackio": "Trackio",
            "clearml": "ClearML",
            "prometheus": "a Prometheus endpoint",
            "traces": "spans or a timeline",
            "rollout_text": "completions as text in files",
            "rollout_dump": "completions with tokens and log-probs in files",
            "tokens_per_second": "tokens per second",
            "mfu": "model FLOPs utilisation",
            "memory": "memory of the devices",
            "lag": "policy lag",
            "mismatch": "engine against trainer",
            "ess": "effective sample size",
        },
    ),
    "abstraction": AxisKind(
        "level of abstraction",
        "at which level does a team debug it?",
        {
            "trainer_class": "a trainer class in one script, whose methods are overridden",
            "single_controller": "one driver program that calls groups of workers",
            "spmd": "every process runs the same program",
            "services": "processes of their own that speak over HTTP, files or queues",
            "client_api": "the loop is the user's, against a service that trains and samples",
        },
    ),
}
"""The axes in the order in which they are shown."""


def complaint_of(axes: Any) -> str | None:
    """What is wrong with the `axes` of an adapter (dates as text), in one line; None where nothing is."""
    if not isinstance(axes, Mapping):
        return "axes is no mapping from an axis to what is declared"
    return next(_complaints(axes), None)


def _complaints(axes: Mapping[str, Any]) -> Iterator[str]:
    for name, said in axes.items():
        if name not in AXES:
            yield f"there is no axis {name}{_nearest(str(name), list(AXES))}"
        elif not isinstance(said, Mapping):
            yield f"axis {name} is no mapping with declared, values, source and date"
        else:
            yield from (f"axis {name}: {what}" for what in _entry(said, AXES[name].values))


def _entry(said: Mapping[str, Any], vocabulary: Mapping[str, str]) -> Iterator[str]:
    yield from _unknown(said, ENTRY_KEYS)
    yield from _texts(said)
    values = said.get("values")
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        yield "values is no list of words of its vocabulary"
        return
    for value in values:
        if not isinstance(value, str) or value not in vocabulary:
            yield f"there is no value {value}{_nearest(str(value), list(vocabulary))}"
    yield from _unread(said.get("unread", []), values, vocabulary)
    former = said.get("was", [])
    if not isinstance(former, list):
        yield "was is no list of what held before"
        return
    for number, was in enumerate(former):
        yield from (f"was, entry {number + 1}: {what}" for what in _former(was))


def _unread(unread: Any, values: Sequence[Any], vocabulary: Mapping[str, str]) -> Iterator[str]:
    if not isinstance(unread, list):
        yield "unread is no list of words of its vocabulary"
        return
    for value in unread:
        if value not in vocabulary:
            yield f"there is no value {value} to be unread{_nearest(str(value), list(vocabulary))}"
        elif value in values:
            yield f"{value} is declared and unread at once"


def _former(was: Any) -> Iterator[str]:
    if not isinstance(was, Mapping):
        yield "it is no mapping with declared, version, until, source and date"
        return
    yield from _unknown(was, WAS_KEYS)
    yield from _texts(was)
    for key in ("version", "until"):
        if not was.get(key):
            yield f"it says no {key}"


def _unknown(said: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    for key in said:
        if key not in known:
            yield f"there is no entry {key}{_nearest(str(key), sorted(known))}"


def _texts(said: Mapping[str, Any]) -> Iterator[str]:
    for key in TEXTS:
        if not isinstance(said.get(key), str) or not said[key].strip():
            yield f"it says no {key}: a value without a source and a date does not load"
    try:
        datetime.date.fromisoformat(str(said.get("date")))
    except ValueError:
        yield f"{said.get('date')} is no date (YYYY-MM-DD)"


def _nearest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
