"""verl's `fully_async` under watch: its task runner, trainer and queue, each a class of verl's with a little more.

All three are Ray actors, made from plain classes that Ray keeps beside them. verl's task runner takes the other two
from its own module by name; there is no plug-in point, so ours are put there in the process that runs it.
"""

import asyncio
import time
from typing import Any

import ray
from verl.experimental.fully_async_policy import fully_async_main
from verl.experimental.fully_async_policy.fully_async_trainer import FullyAsyncTrainer
from verl.experimental.fully_async_policy.message_queue import MessageQueue, MessageQueueClient

from adapters.verl.asynchronous.controller import of_older_trainer
from adapters.verl.asynchronous.older import Scorers, WatchedOlder

FULL = "queue_full"
"""Why the queue drops its oldest prompt: another came, and it held as many as it may."""


class RememberingClient(MessageQueueClient):
    """`MessageQueueClient` that keeps what it handed out until told that it was used."""

    def __init__(self, queue_actor: Any) -> None:
        super().__init__(queue_actor)
        self.out: list[bytes] = []

    async def get_sample(self) -> Any:
        """See `MessageQueueClient.get_sample`."""
        answer = await super().get_sample()
        if answer is not None and answer[0] is not None:
            self.out.append(answer[0])
        return answer

    async def take_dropped(self) -> list[bytes]:
        """What the queue has dropped since it was last asked."""
        return await asyncio.wrap_future(self.queue_actor.take_dropped.remote().future())


class ProbedTrainer(WatchedOlder, FullyAsyncTrainer.__ray_metadata__.modified_class):
    """`FullyAsyncTrainer`."""

    def set_message_queue_client(self, message_queue_client: Any) -> None:
        """The queue stands."""
        super().set_message_queue_client(RememberingClient(message_queue_client.queue_actor))

    async def _setup_checkpoint_manager(self) -> None:
        await super()._setup_checkpoint_manager()
        self.watch_manager()

    async def _fit_update_weights(self) -> Any:
        answer = await super()._fit_update_weights()
        if answer is not None:
            self.published(self.current_param_version)
        return answer

    async def _fit_generate(self, batch: Any = None) -> Any:
        start = time.perf_counter_ns()
        batch = await super()._fit_generate(batch)
        self.message_queue_client.out.clear()
        self.batch_came(start)
        await self._note_dropped()
        return batch

    async def _note_dropped(self) -> None:
        for sample in await self.message_queue_client.take_dropped():
            if self.observes:
                self.controller.dropped(FULL, of_older_trainer(ray.cloudpickle.loads(sample).full_batch))

    async def fit(self) -> None:
        """The whole of training; what the rollouter made and nobody took is then written down."""
        actors = await self.rollouter.__ray_call__.remote(Scorers.of)
        self.begins(actors)
        start = time.perf_counter()
        await super().fit()
        await self._note_dropped()
        for sample in self.message_queue_client.out if self.observes else ():
            self.controller.left(of_older_trainer(ray.cloudpickle.loads(sample).full_batch))
        seconds = time.perf_counter() - start
        self.ended(seconds, actors)


class ProbedQueue(MessageQueue.__ray_metadata__.modified_class):
    """`MessageQueue` that keeps what it drops until it is asked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._dropped: list[bytes] = []

    async def put_sample(self, sample: Any) -> bool:
        """See `MessageQueue.put_sample`: where it is full, the oldest goes."""
        oldest = self.queue[0] if len(self.queue) >= self.max_queue_size else None
        kept: bool = await super().put_sample(sample)
        if not kept and oldest is not None:
            self._dropped.append(oldest)
        return kept

    def take_dropped(self) -> list[bytes]:
        """What was dropped since this was last asked."""
        dropped, self._dropped = self._dropped, []
        return dropped


class ProbedRunner(fully_async_main.FullyAsyncTaskRunner.__ray_metadata__.modified_class):
    """`FullyAsyncTaskRunner`."""

    def run(self, config: Any) -> None:
        """Run a cell with the watched trainer and queue."""
        fully_async_main.FullyAsyncTrainer = ray.remote(num_cpus=1)(ProbedTrainer)
        fully_async_main.MessageQueue = ray.remote(num_cpus=1, max_concurrency=20)(ProbedQueue)
        super().run(config)


def runner() -> Any:
    """The Ray actor class of the task runner."""
    return ray.remote(num_cpus=1)(ProbedRunner)
