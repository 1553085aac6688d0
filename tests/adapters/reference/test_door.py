import threading
import time

import pytest

from adapters.reference.door import Door

SOON = 0.2


def test_one_request_at_a_time() -> None:
    door, inside, most = Door(), [0], [0]

    def ask() -> None:
        with door.request():
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            inside[0] -= 1

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == [1]


def test_a_change_comes_at_once_where_no_request_is_in() -> None:
    assert Door().change(lambda: 7) == 7


def test_a_change_waits_for_the_request_and_comes_before_the_next() -> None:
    door, seen, version = Door(), [], [0]
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with door.request():
            entered.set()
            seen.append(version[0])
            assert leave.wait(10)
            seen.append(version[0])

    def second() -> None:
        with door.request():
            seen.append(version[0])

    def change() -> None:
        door.change(lambda: version.__setitem__(0, 1))

    asking = threading.Thread(target=first)
    asking.start()
    assert entered.wait(10)
    others = [threading.Thread(target=change), threading.Thread(target=second)]
    for thread in others:
        thread.start()
        thread.join(SOON)
        assert thread.is_alive()
    leave.set()
    for thread in (asking, *others):
        thread.join(10)
    assert seen == [0, 0, 1]


def test_a_request_may_let_changes_in() -> None:
    door, version = Door(), [0]
    with door.request():
        assert not door.let_in()
        changing = threading.Thread(target=door.change, args=(lambda: version.__setitem__(0, 1),))
        changing.start()
        while not door.let_in():
            time.sleep(0.001)
        changing.join(10)
        assert version == [1]


def test_what_a_change_raises_is_raised_where_it_was_asked_for() -> None:
    door = Door()

    def breaks() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        door.change(breaks)
    with door.request():
        pass


def test_a_request_that_fails_leaves_the_door_open_and_lets_changes_in() -> None:
    door, version = Door(), [0]
    changing = threading.Thread(target=door.change, args=(lambda: version.__setitem__(0, 1),))

    def fails() -> None:
        with door.request():
            changing.start()
            changing.join(SOON)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    changing.join(10)
    assert version == [1]
    with door.request():
        pass
