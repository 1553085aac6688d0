"""What verl runs inside vLLM's worker (`worker_extension_cls`), with each forward pass timed and its tokens counted."""

import os
import re
import time
from typing import Any

from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from adapters.verl.asynchronous.shares import shares_of
from adapters.verl.processes import close_probes, device_of, open_probe
from harness.probe import Probe

ROUND = re.compile(r"\.b(\d+)\.g\d+\.")


class ProbedExtension(vLLMColocateWorkerExtension):
    """`vLLMColocateWorkerExtension` under watch."""

    def monkey_patch_model(self, *args: Any, **kwargs: Any) -> None:
        """verl calls it once, when the engine stands."""
        super().monkey_patch_model(*args, **kwargs)
        probe = open_probe(f"rollout-{os.environ.get('VERL_REPLICA_RANK', '0')}")
        if probe.enabled:
            self.rlaxes_passes = Passes(self.model_runner, probe)

    def end_watch(self) -> None:
        """The run has ended as it should."""
        close_probes()

    def update_weights_from_ipc(self, *args: Any, **kwargs: Any) -> None:
        """Copies the trainer's weights in."""
        super().update_weights_from_ipc(*args, **kwargs)
        if hasattr(self, "rlaxes_passes"):
            self.rlaxes_passes.weights_changed()


class Passes:
    """Watches the forward passes of one engine; nothing in them is changed."""

    def __init__(self, runner: Any, probe: Probe) -> None:
        self._probe, self._prompts = probe, dict[str, int]()
        self._device = device_of(probe.cell, "rollout")
        self._start = 0
        self._execute, self._sample = runner.execute_model, runner.sample_tokens
        runner.execute_model, runner.sample_tokens = self.execute_model, self.sample_tokens

    def weights_changed(self) -> None:
        """New weights stand. Nothing was under way in a colocated engine; what is written so far is brought to disk."""
        self._probe.flush()

    def execute_model(self, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        """In place of the runner's own; where it samples at once, the pass has ended with it."""
        self._start, self._plan = time.perf_counter_ns(), scheduler_output
        output = self._execute(scheduler_output, *args, **kwargs)
        if output is not None and scheduler_output.total_num_scheduled_tokens:
            self._ended()
        return output

    def sample_tokens(self, *args: Any, **kwargs: Any) -> Any:
        """In place of the runner's own."""
        output = self._sample(*args, **kwargs)
        self._ended()
        return output

    def _ended(self) -> None:
        """A pass samples a token for each request whose prompt it has reached the end of."""
        plan, end = self._plan, time.perf_counter_ns()
        new = {request.req_id: len(request.prompt_token_ids) for request in plan.scheduled_new_reqs}
        before = {request.req_id: request.num_computed_tokens for request in plan.scheduled_new_reqs}
        cached = plan.scheduled_cached_reqs
        before |= dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        self._prompts |= new
        tokens = plan.num_scheduled_tokens
        prefill = {name for name in before if before[name] < self._prompts[name]}
        sampled = {name for name in before if before[name] + tokens[name] >= self._prompts[name]}
        for name in plan.finished_req_ids:
            self._prompts.pop(name, None)
        for share in shares_of(self._start, end, {name: _trace(name) for name in before}):
            filling = [name for name in share.requests if name in prefill]
            read = sum(min(tokens[name], self._prompts.get(name, 0) - before[name]) for name in filling)
            self._probe.add_span(
                "prefill" if filling else "decode",
                share.t_start,
                share.t_end,
                trace_id=share.trace_id,
                device=self._device,
                records=len(share.requests),
                input_tokens=read,
                output_tokens=sum(name in sampled for name in share.requests),
            )


def _trace(name: str) -> str:
    """The generated batch that a request is of."""
    found = ROUND.search(name)
    return f"gen-{found[1]}" if found else "unnamed"
