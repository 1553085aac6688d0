"""verl's vLLM server; in verl's own registry of rollout replicas, in place of the one it stems from."""

from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMReplica


class ProbedVllmReplica(vLLMReplica):
    """`vLLMReplica`."""
