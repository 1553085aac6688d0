"""From words to configurations: lists sweep, wrong words are named with the nearest right one."""

import pytest

from harness.errors import UserError
from harness.execute.compose import compose_choices
from harness.execute.plan import plan_cells, plan_hash


def test_lists_of_adapters_make_a_choice_each_in_the_order_of_names() -> None:
    choices = compose_choices(["adapter=trl,reference", "repeats=3", "task.group_size=4"])
    assert [choice.adapter for choice in choices] == ["reference", "trl"]
    assert all(choice.config["repeats"] == 3 and choice.config["task"]["group_size"] == 4 for choice in choices)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("task.grup_size=4", "there is no setting task.grup_size; did you mean task.group_size?"),
        ("repeat=3", "there is no setting repeat; did you mean repeats?"),
        ("model=smolm2", "there is no such model; did you mean smollm2?"),
        ("adapter=trk", "there is no such adapter; did you mean trl?"),
        ("track=fixed", "there is no such track; did you mean fixed_length?"),
        ("repeats", "is not a setting: write key=value"),
        ("repeats=0", "repeats=0: it has to be a whole number of at least 1"),
        ("task.steps=none", "task.steps=none: it has to be a whole number"),
        ("task.warmup_steps=99", "task.warmup_steps=99: it has to be below task.steps"),
        ("task.minibatches=7", "does not divide the"),
        ("task.temperature=0", "task.temperature=0: it has to be above 0"),
        ("price=custom", "has no value"),
        ("null_test.max_foreign=-1", "null_test.max_foreign=-1: it has to be a number of cores"),
    ],
)
def test_a_wrong_word_gets_one_clear_line(word: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        compose_choices([word])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_blocks_are_interleaved_a_b_b_a() -> None:
    cells = plan_cells(compose_choices(["adapter=fake,reference", "repeats=3"]))
    assert [(cell.label, cell.repeat) for cell in cells] == [
        ("fake", 0),
        ("reference", 0),
        ("reference", 1),
        ("fake", 1),
        ("fake", 2),
        ("reference", 2),
    ]


def test_the_key_follows_what_changes_the_work_and_nothing_else() -> None:
    def keys(*words: str) -> list[str]:
        return [cell.key for cell in plan_cells(compose_choices(["adapter=fake", "repeats=2", *words]))]

    assert keys() == keys()
    assert keys("output=elsewhere") == keys()
    assert keys("task.group_size=4") != keys()
    assert keys("seed=18") != keys()
    assert len(set(keys())) == 2


def test_a_run_is_found_again_by_its_cells_in_any_order() -> None:
    cells = [(cell.cell_id, cell.key) for cell in plan_cells(compose_choices(["adapter=fake", "repeats=3"]))]
    assert plan_hash(cells) == plan_hash([*cells[::-1], cells[0]])
    assert plan_hash(cells) != plan_hash(cells[:2])
