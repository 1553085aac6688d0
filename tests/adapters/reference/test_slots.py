import os

import pytest

from adapters.reference.slots import Slots


@pytest.fixture
def slots() -> Slots:
    return Slots.create(10_000)


def test_two_publications_lie_apart_and_a_third_takes_the_place_of_the_first(slots: Slots) -> None:
    for number in range(3):
        slots.slot(number)[:] = bytes([number + 1]) * len(slots.slot(number))
    assert len(slots.slot(0)) >= 10_000
    assert set(slots.slot(1)) == {2}
    assert set(slots.slot(2)) == {3} == set(slots.slot(0))


def test_nothing_is_held_before_every_rank_has_finished(slots: Slots) -> None:
    assert not slots.holds(0, 1)
    for rank in range(3):
        slots.begin(4, rank)
        assert not slots.holds(4, 3)
        slots.finish(4, rank)
    assert slots.holds(4, 3)
    assert not slots.holds(2, 3)
    slots.begin(5, 0)
    assert slots.holds(4, 3)
    slots.begin(6, 2)
    assert not slots.holds(4, 3)
    assert slots.holds(4, 2)


def test_another_sees_what_is_written_and_cannot_write(slots: Slots) -> None:
    other = Slots.open(slots.path)
    slots.slot(1)[:3] = b"new"
    slots.finish(1, 0)
    assert bytes(other.slot(1)[:3]) == b"new"
    assert other.holds(1, 1)
    with pytest.raises(TypeError):
        other.slot(1)[:3] = b"old"
    rank = Slots.open(slots.path, writable=True)
    rank.slot(1)[:3] = b"own"
    assert bytes(other.slot(1)[:3]) == b"own"


def test_what_is_mapped_outlives_the_maker_and_nothing_lies_about(slots: Slots) -> None:
    path, other = slots.path, Slots.open(slots.path)
    slots.slot(0)[:4] = b"kept"
    slots.close()
    assert bytes(other.slot(0)[:4]) == b"kept"
    with pytest.raises(FileNotFoundError):
        Slots.open(path)


def test_no_room_is_an_error_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, start: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        Slots.create(1)


def test_the_words_of_all_ranks_fit_a_page() -> None:
    slots = Slots.create(1)
    slots.begin(1, 255)
    slots.finish(1, 255)
    assert not any(slots.slot(0))
    assert not any(slots.slot(1))
