"""The colocated loop with what needs no model beside it: a thread verifies each group while the others are still being
generated, and prepares the next batch's prompts while this one is trained on. Weights and data are as in `loop`."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from adapters.reference.engine import Completion
from adapters.reference.loop import Loop, Parts
from adapters.reference.messages import Answer, Request
from adapters.reference.rollout import LocalPool
from adapters.reference.samples import Sample, samples_of
from adapters.reference.scoring import judge
from adapters.reference.settings import Settings
from harness.probe import Probe


class OverlapLoop(Loop):
    """See `Loop`. What the thread does stands in a ledger of its own, `beside`, because it overlaps with the rest; the
    parts' scorer has to write there too."""

    def __init__(self, settings: Settings, parts: Parts, pool: LocalPool, probe: Probe, beside: Probe) -> None:
        super().__init__(settings, parts, probe)
        self._pool, self._beside = pool, beside
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._prepared: tuple[int, Future[Request]] | None = None

    def request(self, batch: int) -> Request:
        """See `Loop.request`; the batch after it begins to be prepared."""
        if self._prepared is None or self._prepared[0] != batch:
            self._prepared = batch, self._thread.submit(self.prepare, batch, self._beside)
        request = self._prepared[1].result()
        if batch + 1 < self._settings.batches:
            self._prepared = batch + 1, self._thread.submit(self.prepare, batch + 1, self._beside)
        return replace(request, step=self._parts.learner.step)

    def answer(self, request: Request, batch: int) -> list[Sample]:
        """See `Loop.answer`. Trajectories of several turns are whole only at the end, and are judged then."""
        judged: dict[int, Future[list[Sample]]] = {}
        publisher = self._parts.publisher
        versions = publisher.policy_version, publisher.published

        def finished(number: int, completions: list[Completion]) -> None:
            part = replace(request, prompts=[request.prompts[number]])
            judged[number] = self._thread.submit(self._judged, part, Answer([completions], *versions), batch)

        ((part, answer),) = self._pool.generate(request, finished)
        for number, prompt in enumerate(part.prompts):
            if number not in judged:
                rest = replace(answer, groups=[answer.groups[number]])
                judged[number] = self._thread.submit(self._judged, replace(part, prompts=[prompt]), rest, batch)
        return [sample for number in range(len(part.prompts)) for sample in judged[number].result()]

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _judged(self, part: Request, answer: Answer, batch: int) -> list[Sample]:
        samples = samples_of(answer, part, batch, self._settings.decoding.stop_at_eos)
        judge(samples, self._parts.scorer, part.step, self._probe)
        return samples
