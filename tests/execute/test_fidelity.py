"""The rows of the fidelity table, whichever the framework."""

from harness.execute.fidelity import FrameworkFidelity

TASK = {"name": "arithmetic", "learning_rate": 3e-4, "advantage_std": "group", "std_ddof": 1, "top_k": 0, "min_p": 0.1}
X = FrameworkFidelity(
    "X",
    different={"top_k": ("unsupported", "X has its own")},
    special={"learning_rate": lambda task, held: ("exact", f"{held['x.optimizer']} at {task['learning_rate']:g}")},
)


def test_every_setting_has_a_row_in_its_order() -> None:
    held = {
        "learning_rate": 3.0000000001e-4,
        "advantage_std": "group",
        "std_ddof": 0,
        "top_k": 50,
        "x.optimizer": "AdamW",
    }
    rows = X.rows(TASK, held | {"x.optimizer": "AdamW"})
    assert [row.setting for row in rows] == list(TASK)
    assert [(row.in_force, row.grade, row.note) for row in rows] == [
        ("arithmetic", "exact", "the harness's own; X does not see it"),
        (3.0000000001e-4, "exact", "AdamW at 0.0003"),
        ("group", "exact", ""),
        (0, "approximated", "X's objects hold another value than asked"),
        (50, "unsupported", "X has its own"),
        (None, "unsupported", "X has no such setting"),
    ]


def test_what_divides_nothing_is_not_used() -> None:
    (row,) = [row for row in X.rows(TASK | {"advantage_std": "none"}, {"std_ddof": 0}) if row.setting == "std_ddof"]
    assert (row.in_force, row.grade) == (None, "exact")


def test_a_number_that_went_through_text_is_the_same() -> None:
    (row,) = X.rows({"top_k": 5}, {"top_k": 5.0})
    assert row.grade == "exact"
