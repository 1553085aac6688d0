import asyncio

from adapters.openrlhf.rollouts import Group
from harness.task.verifier import Verdict


def rewards(*totals: float | None) -> list[float | None]:
    """What OpenRLHF is told of a group with these verdicts."""

    async def run() -> list[float | None]:
        group = Group(len(totals))
        assert [group.place() for _ in totals] == list(range(len(totals)))
        verdicts = [Verdict(total, status="error" if total is None else "ok") for total in totals]
        return list(await asyncio.gather(*(group.agree(verdict) for verdict in verdicts)))

    return asyncio.run(run())


def test_each_completion_has_its_own_reward() -> None:
    assert rewards(1.0, 0.0, 0.5) == [1.0, 0.0, 0.5]


def test_a_group_with_an_error_has_no_reward_at_all() -> None:
    assert rewards(1.0, None, 0.0) == [None, None, None]
