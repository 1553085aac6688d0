from dataclasses import replace

from harness.report.table import comparison
from tests.report.reports import FIGURES, SYNC, empty_row, report, row


def test_columns_stand_in_the_order_of_names_whatever_the_values() -> None:
    model = report()
    model.cells.reverse()
    model.rows = [
        replace(r, value=1e6 if r.adapter == "trl" else 1.0) if r.unit == "tokens/s" else r for r in model.rows
    ]
    assert comparison(model, "free").columns == [("reference", "colocated_sync"), ("trl", "colocated_sync")]


def test_a_line_has_one_scale() -> None:
    model = report()
    model.rows = [row("reference", FIGURES[SYNC], value=0.002), row("trl", FIGURES[SYNC], value=2.0)]
    line = comparison(model, "free").topics[0].families[0].lines[0]
    assert (line.unit, [entry.text for entry in line.entries]) == ("s", ["0.00200", "2"])


def test_a_zero_takes_the_scale_of_its_family() -> None:
    model = report()
    zero = row("trl", FIGURES[SYNC], value=0.0, low=0.0, high=0.0)
    model.rows = [row("trl", FIGURES[SYNC - 1], value=0.2), zero]
    lines = comparison(model, "free").topics[0].families[0].lines
    assert [line.unit for line in lines] == ["ms", "ms"]
    assert lines[1].entries[1].interval == "± 0"


def test_nothing_is_left_out_and_every_gap_has_a_remark() -> None:
    model = report()
    model.rows = [empty_row("trl", SYNC, "not measured", "no span"), row("reference", FIGURES[0])]
    table = comparison(model, "free")
    entries = [e for topic in table.topics for family in topic.families for line in family.lines for e in line.entries]
    gaps = [entry for entry in entries if not entry.valued]
    assert len(gaps) == 3
    assert all(entry.note for entry in gaps)
    assert "no span" in table.notes


def test_variants_without_a_value_share_a_line_that_names_them() -> None:
    model = report()
    silent = [
        replace(empty_row("trl", SYNC, "absent stage", "none"), variant=name) for name in ("checkpoint", "restore")
    ]
    model.rows = [row("trl", FIGURES[SYNC]), *silent]
    lines = comparison(model, "free").topics[0].families[0].lines
    assert [line.variant for line in lines] == ["sync", "checkpoint, restore"]
