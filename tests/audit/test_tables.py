"""The published tables come out as they should: every contradiction is found, no consistent row is accused."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.audit.quantities import Case
from harness.audit.readings import readings
from harness.audit.rule import findings
from harness.audit.rules import RULES
from harness.audit.tables import read_table
from harness.errors import UserError
from tests import DATA

CASES = {case.name: case for case in read_table(DATA / "published_tables.json")}
CONTRADICTIONS = {
    "verl_fa_7b_async_32": "stage_exceeds_step",
    "verl_fa_reqb_1": "parts_exceed_step",
    "v0.5 DAPO DSV3": "out_of_family",
    "v0.6 Q235 1off": "out_of_family",
    "v0.6 SWE": "out_of_family",
}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_what_is_found(case: Case) -> None:
    assert ("INCONSISTENT" in case.facts["expect"]) == (case.name in CONTRADICTIONS)
    expected = [CONTRADICTIONS[case.name]] if case.name in CONTRADICTIONS else []
    assert [finding.rule for finding in findings(case, RULES)] == expected


WORDS = {
    r"seq ([\d.]+)": ("sequential_seconds", 1, 0.01),
    r"sum ([\d.]+)$": ("sequential_seconds", 1, 0.01),
    r"unnamed ([\d.]+)%": ("unnamed_share", 100, 0.06),
    r"(?<!\w)s ([\d.]+)": ("rest", 1, 0.06),
    r"other ([\d.]+)": ("unnamed_seconds", 1, 0.01),
    r"max ([\d.]+)": ("pipeline_seconds", 1, 0.01),
    r"idle ([\d.]+)%": ("trainer_idle_share", 100, 0.5),
}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_what_its_numbers_add_up_to(case: Case) -> None:
    read = readings(case)
    read["rest"] = read.get("pipeline_rest_seconds", read.get("unnamed_seconds", 0.0))
    for words, (name, scale, within) in WORDS.items():
        if "INCONSISTENT" not in case.facts["expect"] and (found := re.search(words, case.facts["expect"])):
            assert read[name] * scale == pytest.approx(float(found[1]), abs=within)


def test_a_unit_slip_says_by_how_much() -> None:
    (finding,) = findings(CASES["v0.6 SWE"], RULES)
    assert "7.87 times" in finding.would_be_true_if
    (line,) = [n for n, text in enumerate(_text().splitlines(), 1) if "v0.6 SWE" in text]
    assert (finding.where.line, finding.where.key) == (line, "tok_s_gpu")


def _text() -> str:
    return (DATA / "published_tables.json").read_text(encoding="utf-8")


MARKDOWN = """Text before.

| model | GPUs | step | gen | old_log_prob | update_actor |
|---|---|---|---|---|---|
| sound | 32 | 790.10 | 357.41 | 107.71 | 269.80 |
| not sound | 32 | 294.77 | 21.26 | - | **313.81** |
"""


@pytest.mark.parametrize(("suffix", "separator"), [(".md", None), (".csv", ",")])
def test_markdown_and_csv(tmp_path: Path, suffix: str, separator: str | None) -> None:
    text = MARKDOWN
    if separator:
        rows = [line.strip("|").split("|") for line in MARKDOWN.splitlines() if line.startswith("| ")]
        text = "\n".join(separator.join(cell.strip() for cell in row) for row in rows) + "\n"
    path = tmp_path / f"table{suffix}"
    path.write_text(text, encoding="utf-8")
    found = [finding for case in read_table(path) for finding in findings(case, RULES)]
    assert [(finding.case, finding.rule) for finding in found] == [("not sound", "stage_exceeds_step")]
    assert found[0].where.line == (6 if suffix == ".md" else 3)


def test_every_row_of_the_file_is_asked() -> None:
    rows = json.loads(_text())
    assert len(CASES) == len(rows["stages"]) + len(rows["nemo_rl"]["rows"]) == 33
    assert set(CONTRADICTIONS) <= set(CASES)


def test_the_list_of_rows_that_names_no_columns(tmp_path: Path) -> None:
    """As it was first gathered: positional rows below a formula."""
    path = tmp_path / "raw.json"
    content = json.loads(_text())
    path.write_text(json.dumps({"nemo_rl_identity": {"formula": "x", "rows": content["nemo_rl"]["rows"]}}))
    found = {finding.case for case in read_table(path) for finding in findings(case, RULES)}
    assert found == {"v0.5 DAPO DSV3", "v0.6 Q235 1off", "v0.6 SWE"}


SLASHED = """| version, HW | model | policy | avg len | GPUs | GBS | tok/s/GPU | step s |
|---|---|---|---|---|---|---|---|
| v0.6 H100 | DeepSeek-V3 | on / 1-off | 701 / 710 | 256 / 512 | 512 | 12.1 / 12.8 | 134 / 64.1 |
| v0.6 H100 | Qwen3-30B | on / 1-off | 3203 / 3201 | 32 / 32 | 2048 | 1102 / 1414 | 192 / 152 |
| v0.6 H100 | Qwen3-235B | 1-off | 5721 | 256 | 512 | **58.7** | 231 |
"""


def test_a_row_of_several_runs_is_that_many_cases(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(SLASHED, encoding="utf-8")
    cases = read_table(path)
    assert [case.name for case in cases][:2] == ["v0.6 H100, DeepSeek-V3, on", "v0.6 H100, DeepSeek-V3, 1-off"]
    assert [seen.value for case in cases for seen in case.of("samples")] == [512, 512, 2048, 2048, 512]
    found = [(finding.case, finding.rule) for case in cases for finding in findings(case, RULES)]
    assert found == [("v0.6 H100, Qwen3-235B, 1-off", "out_of_family")]


def test_runs_of_one_model_side_by_side_did_the_same_work_or_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    head = "| version, HW | model | policy | avg len | step s |\n|---|---|---|---|---|\n"
    rows = ("8B | on / 1-off | 1060 / 1129 | 97.7 / 74.6", "30B | on / 1-off | 3154 / 3158 | 225 / 244")
    path.write_text(head + "".join(f"| v0.4 H100 | {row} |\n" for row in rows), encoding="utf-8")
    (finding,) = [finding for case in read_table(path) for finding in findings(case, RULES)]
    assert (finding.rule, finding.case) == ("other_work", "v0.4 H100, 8B, 1-off")
    assert "+6.5%" in finding.evidence


def test_columns_may_be_named_as_the_quantities_are(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("model,mfu,probability_sum\na,0.4,1.0\nb,1.018,1.148\n", encoding="utf-8")
    found = [(finding.case, finding.rule) for case in read_table(path) for finding in findings(case, RULES)]
    assert found == [("b", "mfu_over_one"), ("b", "probabilities_do_not_add_up")]


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", '{"rows": [[1]]}', "{", '[{"colour": "red"}]'])
def test_what_is_no_table_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.json"):
        read_table(path)


@given(text=st.text(max_size=300), suffix=st.sampled_from([".md", ".csv", ".json"]))
def test_rubbish_is_an_error_of_the_user_or_a_table(
    tmp_path_factory: pytest.TempPathFactory, text: str, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("rubbish") / f"x{suffix}"
    path.write_text(text, encoding="utf-8", errors="replace")
    with suppress(UserError):
        read_table(path)


def test_a_synchronous_run_may_be_the_faster_one() -> None:
    path = DATA / "real_logs" / "skyrl" / "marin_async_vs_sync_tables_2026-09.json"
    cases = {case.name: case for case in read_table(path)}
    seconds = {name: run.value for name, case in cases.items() if (run := case.one("run_seconds"))}
    assert (seconds["sync"], seconds["async C1/A1"], seconds["async C2/A1"]) == (250.5, 339.5, 256.4)
    idle = {name: readings(case).get("trainer_idle_share", 0.0) for name, case in cases.items()}
    assert max(idle.values()) < 0.05  # its trainer waits for weights to be copied, not for data
    for name in ("async C1/A1", "async C2/A1"):
        assert 0 < readings(cases[name])["unnamed_seconds"] < 10
    assert [found for case in cases.values() for found in findings(case, RULES)] == []
