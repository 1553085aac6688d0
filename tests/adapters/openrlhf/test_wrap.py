from types import SimpleNamespace
from typing import Any

from adapters.openrlhf.wrap import wrap, wrap_with_actors


class Base:
    def step(self, by: int) -> int:
        return by


def doubled(call: Any, self: Any, by: int) -> int:
    return 2 * int(call(self, by))


def test_a_wrapped_method_is_called_through_ours() -> None:
    owner = type("Owner", (Base,), {})
    wrap(owner, "step", doubled)
    assert owner().step(2) == 4
    assert owner.step.__name__ == "step"


def test_an_actor_that_has_a_copy_of_the_method_is_wrapped_too_and_one_that_has_none_only_once() -> None:
    owner = type("Owner", (Base,), {})
    copying = type("Copying", (owner,), {"step": Base.step})
    inheriting = type("Inheriting", (owner,), {})
    actors = [
        SimpleNamespace(__ray_metadata__=SimpleNamespace(modified_class=actor)) for actor in (copying, inheriting)
    ]
    wrap_with_actors(SimpleNamespace(owner=owner, one=actors[0], two=actors[1]), owner, "step", doubled)
    assert [kind().step(2) for kind in (owner, copying, inheriting)] == [4, 4, 4]
