"""Where the adapter holds on to verl and vLLM, as data, and the check that what is installed still has each place."""

import os
import sys
import tempfile
from pathlib import Path

from adapters.verl import ray_start
from adapters.verl.asynchronous import hooks as asynchronous
from harness.probe.hooks import HookPoint, verify_hooks

TRAINER = "verl.trainer.ppo.v1.trainer_base:PPOTrainer"
WORKER = "verl.workers.engine_workers:ActorRolloutRefWorker"
ENGINE = "verl.workers.engine.fsdp.transformer_impl:FSDPEngineWithLMHead"
AGENTS = "verl.trainer.ppo.v1.agent_loop_tq"
SERVER = "verl.workers.rollout.vllm_rollout.vllm_async_server"
EXTENSION = "verl.workers.rollout.vllm_rollout.utils:vLLMColocateWorkerExtension"
RUNNER = "vllm.v1.worker.gpu_model_runner:GPUModelRunner"

HOOKS = (
    HookPoint("verl.trainer.ppo.v1.trainer_base:register_trainer", "startup", "registers our trainers", ("name",)),
    HookPoint(
        "verl.workers.engine.base:EngineRegistry.register", "startup", "registers our engine", ("device", "vendor")
    ),
    HookPoint(
        "verl.workers.rollout.replica:RolloutReplicaRegistry.register", "startup", "registers our server", ("loader",)
    ),
    HookPoint(f"{TRAINER}._build_replay_buffer", "queue_wait", "its buffer's poll_interval is set"),
    HookPoint(
        "verl.trainer.ppo.v1.replay_buffer:ReplayBuffer._wait_for_next_poll", "queue_wait", "sleeps poll_interval"
    ),
    HookPoint(f"{TRAINER}._init_resource_pool_mgr", "startup", "its worker classes are replaced by ours"),
    HookPoint(f"{TRAINER}.on_init_end", "startup", "the initial weights are handed over in it"),
    HookPoint(f"{TRAINER}.on_train_begin", "startup", "the first step is about to begin"),
    HookPoint(f"{TRAINER}.prepare_step", "prompt_prep", "takes prompts from the data and hands them out"),
    HookPoint(f"{TRAINER}._submit_batch_to_rollout", "prompt_prep", "what is put into a batch rides along", ("batch",)),
    HookPoint(f"{TRAINER}.on_sample_begin", "queue_wait", "the wait for completions begins"),
    HookPoint(f"{TRAINER}.on_sample_end", "queue_wait", "the wait for completions ended"),
    HookPoint(f"{TRAINER}._compute_advantage", "tokens", "tokens, rewards and advantages are all there", ("batch",)),
    HookPoint(f"{TRAINER}.on_step_end", "weight_sync", "hands the weights over"),
    HookPoint(f"{TRAINER}.fit", "startup", "the whole of training", ("agent_loop_manager",)),
    HookPoint(f"{TRAINER}._save_checkpoint", "checkpoint", "writes verl's checkpoint"),
    HookPoint(f"{TRAINER}._load_checkpoint", "restore", "restores verl's checkpoint"),
    HookPoint(f"{WORKER}.init_model", "startup", "the engine stands after it"),
    HookPoint(f"{WORKER}.update_weights", "weight_sync", "hands the weights over", ("global_steps", "mode")),
    HookPoint(f"{ENGINE}.train_batch", "optimizer_step", "one optimizer step", ("data", "loss_function")),
    HookPoint(f"{ENGINE}.forward_backward_batch", "forward_backward", "all passes of a step", ("data", "forward_only")),
    HookPoint(f"{ENGINE}.forward_step", "tokens", "log-probs of the training forward pass", ("micro_batch",)),
    HookPoint(f"{ENGINE}.optimizer_step", "optimizer_step", "clips and steps"),
    HookPoint(f"{ENGINE}.get_per_tensor_param", "weight_sync", "the weights that are handed over"),
    HookPoint("verl.workers.utils.padding:no_padding_2_padding", "tokens", "log-probs of the response's tokens"),
    HookPoint(
        "verl.experimental.agent_loop.single_turn_agent_loop:SingleTurnAgentLoop.run", "tokens", "one completion"
    ),
    HookPoint("verl.workers.rollout.llm_server:LLMServerClient.generate", "decode", "asks a server", ("request_id",)),
    HookPoint("verl.workers.rollout.llm_server:LLMServerClient._vllm_request_id", "decode", "names a request"),
    HookPoint(f"{AGENTS}:AgentLoopManagerTQ", "tokens", "its worker class is replaced by ours"),
    HookPoint(
        f"{AGENTS}:AgentLoopWorkerTQ.__ray_metadata__.modified_class._agent_loop_postprocess", "verifier", "scores"
    ),
    HookPoint(f"{SERVER}:vLLMReplica", "startup", "its server class is replaced by ours"),
    HookPoint(f"{SERVER}:vLLMHttpServer._get_worker_extension_cls", "startup", "names what runs in vLLM's worker"),
    HookPoint(f"{SERVER}:vLLMHttpServer.launch_server", "startup", "the engine stands after it"),
    HookPoint(f"{SERVER}:vLLMHttpServer.generate", "prefill", "answers a request", ("request_id",)),
    HookPoint(f"{EXTENSION}.monkey_patch_model", "startup", "is called once, when the model is loaded"),
    HookPoint(f"{EXTENSION}.update_weights_from_ipc", "weight_sync", "copies the trainer's weights in"),
    HookPoint(f"{RUNNER}.execute_model", "decode", "a forward pass begins, with its plan", ("scheduler_output",)),
    HookPoint(f"{RUNNER}.sample_tokens", "decode", "a forward pass ends with its sampling"),
)


def hook_drift() -> list[str]:
    """One message for each place where the installed packages no longer are what the adapter holds on to."""
    points = [*HOOKS, *asynchronous.HOOKS, ray_start.HOOK]
    if not _has_gpu():
        _as_on_a_cpu()
        from adapters.verl.cpu import plugin

        points += plugin.HOOKS
    return verify_hooks(points)


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _as_on_a_cpu() -> None:
    """What a cell's environment and main process do before verl is imported."""
    from adapters.verl.cpu.package_name import name_vllm

    os.environ["VERL_PLATFORM"] = "cpu"
    folder = Path(tempfile.mkdtemp())
    if name_vllm(folder) is not None:
        sys.path.append(str(folder))
