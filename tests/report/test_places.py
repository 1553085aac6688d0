"""The report of a run whose cells come from two machines, whose ids are forged."""

from pathlib import Path
from typing import Any

from harness.report.build import build_report
from tests.report.runs import cell, make_run

MACHINE = {
    "system": "Linux",
    "architecture": "x86_64",
    "cores": 2,
    "memory_bytes": 2**34,
    "python": "3.11.7",
    "gpus": [],
}
LIMITS = {"bandwidth_bytes_per_s": 1e10, "matrix_flops_per_s": 1e11, "dtype": "float32"}


def _part(name: str, machine: str) -> list[dict[str, Any]]:
    """The cells of a system and of the reference beside it."""
    said = {"machine": machine, "part": name}
    beside = cell("reference") | said
    beside |= {
        "cell_id": f"reference~{name}.colocated_sync.free.r0",
        "twin": f"reference~{name}.colocated_sync.free.r0",
    }
    return [beside, cell(name) | said]


def test_the_columns_of_two_machines_stand_apart(tmp_path: Path) -> None:
    cells = [*_part("trl", "aaaa1111"), *_part("verl", "bbbb2222")]
    machines = {
        name: {
            "machine": MACHINE | {"id": name, "cpu_model": cpu},
            "roofline": LIMITS | {"bandwidth_bytes_per_s": speed},
        }
        for name, cpu, speed in (("aaaa1111", "One", 1e10), ("bbbb2222", "Another", 4e10))
    }
    names = ("reference", "trl", "verl", "reference~trl", "reference~verl")
    run = make_run(tmp_path, cells, adapters=names, machines=machines)
    model = build_report(run)
    labels = ["reference on aaaa1111", "reference on bbbb2222", "trl on aaaa1111", "verl on bbbb2222"]
    assert [adapter for adapter, _ in model.columns("free")] == labels
    assert model.machine["on bbbb2222"].startswith("processor Another; cores 2")
    (caution,) = [one for one in model.cautions if one.about == "machines"]
    assert "on aaaa1111, on bbbb2222" in caution.text
    assert {one.adapter: one.baseline for one in model.judgements} == {
        "trl on aaaa1111": "reference on aaaa1111",
        "verl on bbbb2222": "reference on bbbb2222",
    }
    for name in ("report.md", "report.html"):
        text = (run / name).read_text(encoding="utf-8")
        assert all(label in text for label in labels)
    observed = [axis for axis in model.axes if axis.adapter == "trl" and axis.measured]
    assert observed
    shares = {row.adapter: row.value for row in model.rows if row.measure == "headroom_decode" and row.value}
    assert shares == {} or shares["reference on aaaa1111"] != shares["reference on bbbb2222"]
