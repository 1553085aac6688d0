"""The patches without which OpenRLHF does not run on a CPU. Standard library only."""

from adapters.openrlhf.patch import Patch
from harness.probe.hooks import HookPoint

HERE = "adapters.openrlhf.cpu.patches"
STRATEGY = "openrlhf.utils.deepspeed.deepspeed"
CONFIGS = "openrlhf.utils.deepspeed.deepspeed_utils"
GROUPS = "openrlhf.utils.distributed_util"
WORKER = "openrlhf.trainer.ray.vllm_worker_wrap"
BUFFER = "openrlhf.trainer.ppo_utils.replay_buffer"
GEMM = "vllm.model_executor.layers.utils"
DTYPES = "openrlhf.utils.utils"
COMM = "deepspeed.comm.torch"

PATCHES = (
    Patch(
        "cuda_calls",
        GROUPS,
        f"{HERE}:answer_cuda_calls",
        "torch.cuda.current_device, empty_cache, synchronize and their like are called whatever the accelerator is",
        (HookPoint("torch.cuda:current_device", "device", "its answer is where tensors go"),),
    ),
    Patch(
        "device_mesh",
        STRATEGY,
        f"{HERE}:mesh_on_cpu",
        "the device mesh is asked for by the word cuda",
        (HookPoint(f"{STRATEGY}:init_device_mesh", "device", "its first argument becomes cpu"),),
    ),
    Patch(
        "plain_adam",
        CONFIGS,
        f"{HERE}:plain_adam",
        "DeepSpeed would compile a fused optimizer; torch's AdamW is the same rule",
        (HookPoint(f"{CONFIGS}:get_train_ds_config", "optimizer_step", "torch_adam is added", ("optim_config",)),),
    ),
    Patch(
        "no_compiled_collectives",
        COMM,
        f"{HERE}:no_compiled_collectives",
        "DeepSpeed would compile collectives over shared memory when its group starts, for minutes, behind a lock that "
        "a killed run leaves to all later ones; gloo's do the same",
        (HookPoint(f"{COMM}:build_shm_op", "startup", "builds nothing"),),
    ),
    Patch(
        "replay_buffer_device",
        BUFFER,
        f"{HERE}:buffer_on_cpu",
        "the buffer names its device cuda:<number>",
        (HookPoint(f"{BUFFER}:NaiveReplayBuffer.__init__", "device", "target_device becomes cpu"),),
    ),
    Patch(
        "weight_group",
        GROUPS,
        f"{HERE}:broadcast_by_store",
        "weights are broadcast by NCCL; here they go through vLLM's own store of the same group",
        (
            HookPoint(
                f"{GROUPS}:stateless_init_process_group",
                "weight_sync",
                "makes the group of trainer and engines",
                ("master_address", "master_port", "rank", "world_size", "device"),
            ),
            HookPoint("vllm.distributed.utils:StatelessProcessGroup.broadcast_obj", "weight_sync", "carries a tensor"),
        ),
    ),
    Patch(
        "weight_receiver",
        WORKER,
        f"{HERE}:receive_on_cpu",
        "the engine's worker receives into a tensor on cuda",
        (HookPoint(f"{WORKER}:WorkerWrap.update_weight", "weight_sync", "is replaced", ("name", "dtype", "shape")),),
    ),
    Patch(
        "unpacked_linear",
        GEMM,
        f"{HERE}:leave_linear_unpacked",
        "vLLM's CPU build packs linear weights at start and drops them: later weights would be loaded in part, and a "
        "tied output layer would keep its first ones",
        (HookPoint(f"{GEMM}:dispatch_cpu_unquantized_gemm", "weight_sync", "is replaced", ("layer",)),),
    ),
)

FLOAT32 = (
    Patch(
        "float32_weights",
        DTYPES,
        f"{HERE}:load_in_float32",
        "OpenRLHF knows bf16 and fp16; the task asks for float32",
        (HookPoint(f"{DTYPES}:convert_to_torch_dtype", "precision", "is replaced", ("param_dtype",)),),
    ),
    Patch(
        "float32_training",
        CONFIGS,
        f"{HERE}:train_in_float32",
        "DeepSpeed is told bf16; with neither bf16 nor fp16 it computes in float32",
        (
            HookPoint(f"{CONFIGS}:get_train_ds_config", "precision", "bf16 is switched off", ("param_dtype",)),
            HookPoint(f"{CONFIGS}:get_eval_ds_config", "precision", "bf16 is switched off", ("param_dtype",)),
        ),
    ),
)
"""In force where `adapter.precision` is `task` and the task asks for float32; vLLM is told by `engine_arguments`."""
