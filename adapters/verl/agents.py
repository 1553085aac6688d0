"""verl's agent-loop workers, reached by `rollout.agent.agent_loop_manager_class`."""

from verl.trainer.ppo.v1 import AgentLoopManagerTQ


class ProbedAgentLoopManager(AgentLoopManagerTQ):
    """`AgentLoopManagerTQ`."""
