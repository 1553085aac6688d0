"""verl's replay buffer of the V1 asynchronous modes, which says what it drops (`trainer.v1.sampler.custom_sampler`)."""

from collections.abc import Callable
from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync

from adapters.verl.settings import POLL_SECONDS

STALE, FAILED = "stale", "generation_failed"
Told = Callable[[str, list[str]], None]


class WatchedBuffer(ReplayBufferAsync):
    """`ReplayBufferAsync`; `told` is called with a reason and TransferQueue's keys before what they hold is cleared."""

    told: Told | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments of `ReplayBufferAsync`; the interval at which it looks is ours, see `POLL_SECONDS`."""
        super().__init__(*args, **kwargs)
        self.poll_interval = POLL_SECONDS

    def _evict_terminal_groups(self, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
        stale, _, failed, _ = eviction_reasons
        if self.told is not None:
            for reason, uids in ((STALE, stale), (FAILED, failed - stale)):
                if keys := self._keys_of(partition_id, uids):
                    self.told(reason, keys)
        return super()._evict_terminal_groups(global_steps, partition_id, eviction_reasons)

    def left(self, partition_id: str = "train") -> tuple[list[str], int]:
        """What nobody has taken: the keys of finished completions, and how many prompts are still being worked on."""
        uids = set(self.prompts(partition_id))
        waiting = len(self.pending_keys[partition_id]) + len(self.running_keys[partition_id])
        return self._keys_of(partition_id, uids), waiting

    def prompts(self, partition_id: str = "train") -> list[str]:
        """The ids of all prompts that were handed out and not taken yet."""
        self._sync_metadata_from_transfer_queue()
        return sorted(self.prompt_global_steps[partition_id])

    def _keys_of(self, partition_id: str, uids: set[str]) -> list[str]:
        """A completion's key begins with the id of its prompt's group."""
        return [key for key in self.partitions[partition_id] if key.split("_")[0] in uids]
