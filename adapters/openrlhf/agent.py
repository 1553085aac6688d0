"""The file that `--train.agent_func_path` names: OpenRLHF loads it in each engine's Ray actor and asks it for one
completion at a time (openrlhf/trainer/ray/vllm_engine.py `generate_responses`)."""

from typing import Any

from openrlhf.utils.agent import AgentExecutorBase

from adapters.openrlhf.cellfile import this_cell
from adapters.openrlhf.rollouts import RolloutWork


class AgentExecutor(AgentExecutorBase):
    """OpenRLHF's plug-in for rollouts: samples one completion, has it scored, and hands both back."""

    def __init__(self) -> None:
        """Called before the engine is built."""
        self._work = RolloutWork(this_cell())

    async def execute(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        """One completion of the prompt that `label`, a line of the data set, stands for."""
        del max_length, images
        return await self._work.complete(prompt, label, sampling_params, hf_tokenizer, llm_engine)
