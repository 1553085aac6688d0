"""The engine's side: completions sampled token in, token out by OpenRLHF's vLLM actor, and scored by our verifier."""

import asyncio
import json
import multiprocessing
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

from adapters.openrlhf.busy import BusyStage
from adapters.openrlhf.records import Completion, run_lengths, trace_of
from adapters.openrlhf.settings import prompt_file
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.probe.memory import SAMPLE_SECONDS
from harness.task.bundle import Bundle
from harness.task.faulty_verifier import start_verifier
from harness.task.verifier import Verdict

FINISH = "rlaxes: close"
"""A prompt that is none: the main process sends it when training has ended."""
DECODING = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "ignore_eos")
UNSCORED = 0.0
"""What stands for the reward of a group of which a member has no verdict. OpenRLHF takes None for the wish to have a
reward model score the batch; of such a group it is told that no token is an action, so that it trains on none."""


class Group:
    """The completions of one prompt: a reward counts once all of them have a verdict."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._asked = 0
        self._verdicts: list[Verdict] = []
        self._whole = asyncio.Event()

    def place(self) -> int:
        """The next completion's place in the group."""
        self._asked += 1
        return self._asked - 1

    async def agree(self, verdict: Verdict) -> float | None:
        """The reward of a completion with this verdict; None where a member of its group has none."""
        self._verdicts.append(verdict)
        if len(self._verdicts) == self._size:
            self._whole.set()
        await self._whole.wait()
        return None if any(member.reward_total is None for member in self._verdicts) else verdict.reward_total

    @property
    def ended(self) -> bool:
        """Whether every member has its verdict."""
        return self._whole.is_set()


class RolloutWork:
    """What an engine's actor does for us. All but the verifier runs in the actor's event loop."""

    def __init__(self, cell: dict[str, Any]) -> None:
        """Before the engine is built; starts the verifier."""
        self._started = time.perf_counter_ns()
        self._cell, self._task = cell, cell["task"]
        self._rows = [json.loads(line) for line in prompt_file(cell).read_text(encoding="utf-8").splitlines()]
        bundle = Bundle.load(Path(cell["bundle"]))
        self._prompts = {prompt.prompt_id: prompt for prompt in bundle.prompts}
        self._groups: dict[int, Group] = {}
        self._round, self._sampled = -1, 0.0
        self._served = 0
        self._engine: Any = None
        self._replica = _number_of(cell)
        self._probe = Probe(cell, f"rollout-{self._replica}", enabled=bool(cell["observer"]))
        self._judge_probe = Probe(cell, f"verifier-{self._replica}", enabled=bool(cell["observer"]))
        self._generating = BusyStage(self._probe, "generate")
        self._verifying = BusyStage(self._judge_probe, "verifier")
        self._faults = Faults.of(cell, f"rollout-{self._replica}")
        self._verifier = start_verifier(cell, bundle, f"verifier-{self._replica}")
        self._judge = ThreadPoolExecutor(1, thread_name_prefix="judge")

    async def complete(self, prompt: str, label: str, params: Any, tokenizer: Any, engine: Any) -> dict[str, Any]:
        """One completion of a line of the data set, as OpenRLHF wants it back.

        Raises:
            SystemFailure: the verifier's process cannot be started again.
        """
        self._attach(engine)
        if prompt == FINISH:
            self._close()
            return {}
        row = int(label)
        group = self._groups.setdefault(row, Group(self._task["group_size"]))
        completion = Completion(row, group.place(), self._replica)
        problem = self._prompts[self._rows[row]["prompt_id"]]
        await self._sample(completion, problem.token_ids, self._params(params))
        completion.text = tokenizer.decode(completion.tokens, skip_special_tokens=True)
        verdict = await self._score(completion, problem.prompt_id)
        reward = await group.agree(verdict)
        if group.ended:
            self._groups.pop(row, None)
        answer = self._answer(problem.token_ids, completion, reward, params.logprobs is not None)
        return {"prompt": prompt, "label": completion.to_label() if self._probe.enabled else label, **answer}

    def _params(self, given: Any) -> Any:
        """OpenRLHF's sampling parameters with what it has no flag for; it forbids an end of sequence as first token."""
        params, task = deepcopy(given), self._task
        params.min_tokens, params.logprobs = 0, 0
        params.top_k, params.min_p = task["top_k"], task["min_p"]
        params.ignore_eos = self._cell["track"] == "fixed_length"
        return params

    async def _sample(self, completion: Completion, prompt: list[int], params: Any) -> None:
        from vllm.inputs import TokensPrompt

        trace_id = self._trace_of(completion.row)
        completion.decoding = {name: getattr(params, name) for name in DECODING}
        completion.times = {"t_queued": time.perf_counter_ns()}
        self._generating.enter(trace_id, records=1, input_tokens=len(prompt))
        served: list[int] = []
        last = None
        try:
            request = TokensPrompt(prompt_token_ids=list(prompt))
            async for last in self._engine.llm.generate(request, params, request_id=uuid.uuid4().hex):
                completion.times.setdefault("t_first_token", time.perf_counter_ns())
                new = len(last.outputs[0].token_ids) - len(served)
                served += [self._served] * new
                self._generating.count(output_tokens=new)
            completion.times["t_generate_end"] = time.perf_counter_ns()
        finally:
            self._generating.leave()
        self._read(completion, last, served)

    def _read(self, completion: Completion, last: Any, served: list[int]) -> None:
        """Take over what vLLM's last output says."""
        output = last.outputs[0]
        completion.tokens, completion.served = list(output.token_ids), run_lengths(served)
        chosen = zip(completion.tokens, output.logprobs, strict=True)
        completion.logprobs = [min(float(known[token].logprob), 0.0) for token, known in chosen]
        ended = output.finish_reason == "stop"
        completion.stop_reason = ("eos" if output.stop_reason is None else "stop") if ended else "length"
        scheduled = int(1e9 * last.metrics.scheduled_ts) if last.metrics is not None else 0
        queued, first = completion.times["t_queued"], completion.times["t_first_token"]
        completion.times["t_generate_start"] = min(max(scheduled, queued), first)

    async def _score(self, completion: Completion, prompt_id: str) -> Verdict:
        self._verifying.enter(self._trace_of(completion.row), records=1)
        try:
            loop = asyncio.get_running_loop()
            asked = [(prompt_id, completion.text)]
            verdict: Verdict = (await loop.run_in_executor(self._judge, self._verifier.score, asked))[0]
        finally:
            self._verifying.leave()
        completion.reward, completion.components = verdict.reward_total, dict(verdict.components)
        completion.times |= {"t_verify_start": verdict.t_start, "t_verify_end": verdict.t_end}
        completion.error = (verdict.detail or "no verdict") if verdict.status != "ok" else None
        return verdict

    def _answer(self, ids: list[int], completion: Completion, reward: float | None, logprobs: bool) -> dict[str, Any]:
        """What `SingleTurnAgentExecutor.execute` returns beside prompt and label (openrlhf/utils/agent.py)."""
        return {
            "images": None,
            "mm_train_inputs": None,
            "reward": UNSCORED if reward is None else reward,
            "scores": UNSCORED if reward is None else reward,
            "observation_tokens": [*ids, *completion.tokens],
            "action_ranges": [] if reward is None else [(len(ids), len(ids) + len(completion.tokens))],
            "rollout_log_probs": [0.0] * len(ids) + completion.logprobs if logprobs else None,
            "truncated": completion.stop_reason == "length",
            "extra_logs": {},
        }

    def _trace_of(self, row: int) -> str:
        batch = row // self._task["prompts_per_batch"]
        if batch != self._round:
            self._round = batch
            self._sample_core()
            self._faults.at("rollout.generate")
        return trace_of(batch, self._cell["attempt"])

    def _sample_core(self) -> None:
        """The memory of vLLM's own process, which has no probe: once a batch, and not more often than every second."""
        now = time.monotonic()
        if now - self._sampled < SAMPLE_SECONDS:
            return
        self._sampled = now
        for child in multiprocessing.active_children():
            if child.pid is not None:
                self._probe.memory_of(child.pid, f"engine-core-{self._replica}")

    def _attach(self, engine: Any) -> None:
        """On the first call: watch the engine's broadcasts and pauses, on the instance."""
        if self._engine is not None:
            return
        self._engine = engine
        self._probe.add_span("startup", self._started, time.perf_counter_ns(), trace_id="startup")
        llm = engine.llm
        call, pause, resume = llm.collective_rpc, llm.pause_generation, llm.resume_generation

        async def collective_rpc(method: Any, *args: Any, **kwargs: Any) -> Any:
            answer = await call(method, *args, **kwargs)
            if str(method).startswith("update_weight") and kwargs["args"][-1] is True:  # the last tensor of a broadcast
                self._served += 1
            return answer

        llm.collective_rpc = collective_rpc
        llm.pause_generation = _then(pause, self._generating.pause)
        llm.resume_generation = _then(resume, self._generating.resume)

    def _close(self) -> None:
        self._verifier.close()
        self._judge.shutdown()
        self._judge_probe.close()
        self._probe.close()


def _then(call: Callable[..., Any], after: Callable[[], None]) -> Callable[..., Any]:
    async def both(*args: Any, **kwargs: Any) -> Any:
        answer = await call(*args, **kwargs)
        after()
        return answer

    return both


def _number_of(cell: dict[str, Any]) -> int:
    """The first number that no engine of this cell's attempt has taken yet."""
    taken = Path(cell["directory"]) / "openrlhf" / f"replicas-{cell['attempt']}"
    taken.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        try:
            (taken / str(number)).touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return number
