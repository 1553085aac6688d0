"""A sweep is one table of simulations, the same here and as jobs."""

from pathlib import Path

import pytest

from harness.errors import UserError
from harness.execute.compose import compose_choices
from harness.simulate.profiles import settings_of
from harness.simulate.simulate import simulate
from harness.simulate.sweep import Point, points_of, run_points

WORDS = ["overlap=deep", "seconds=5", "rollout.replicas=4,8"]


def test_a_list_is_a_sweep_and_a_comma_in_brackets_is_none() -> None:
    points = points_of([*WORDS, "response_tokens={name: uniform, low: 5, high: 9},{name: constant, value: 7}"])
    assert [list(point.swept.values()) for point in points] == [
        ["4", "{name: uniform, low: 5, high: 9}"],
        ["4", "{name: constant, value: 7}"],
        ["8", "{name: uniform, low: 5, high: 9}"],
        ["8", "{name: constant, value: 7}"],
    ]
    assert points_of(["overlap=deep"]) == [Point(["overlap=deep"], {})]
    assert [point.swept for point in points_of([])] == [{"overlap": n} for n in ("synchronous", "shallow", "deep")]


def test_what_cannot_be_read_is_said_before_anything_runs() -> None:
    with pytest.raises(UserError, match="did you mean replicas"):
        points_of(["rollout.replica=4,8"])


def test_a_sweep_gives_what_each_simulation_gives_and_one_that_is_refused_costs_no_other(tmp_path: Path) -> None:
    points = points_of(["overlap=deep", "seconds=5", "queue.tokens=4096,null"])
    here = compose_choices([])[0].config["launcher"]
    first, second = run_points(points, here, tmp_path, print)
    (alone,) = settings_of(["overlap=deep", "seconds=5", "queue.tokens=4096"])
    assert first.figures == simulate(alone).figures
    assert second.figures == {}
    assert "unstable: 3,932 tokens/s arrive" in str(second.refused)


def test_jobs_give_the_same(tmp_path: Path) -> None:
    points = points_of(["overlap=deep", "seconds=5", "queue.tokens=4096,null"])
    asked = [compose_choices(words)[0].config["launcher"] for words in ([], ["launcher=submitit_local"])]
    here, there = (run_points(points, one, tmp_path, print) for one in asked)
    assert here == there
