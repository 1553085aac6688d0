import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.export.latex import MOST_COLUMNS, escape, render_latex
from harness.report.model import ReportModel
from tests.report.reports import HOSTILE, SYNC, empty_row, report

LATEX = shutil.which("pdflatex")
OWN = {
    "booktabs": ("toprule", "midrule", "bottomrule"),
    "longtable": ("endhead", "endfirsthead", "endfoot", "caption", "LTcapwidth", "linewidth", "setlength"),
}
ALLOWED = {"multicolumn", "textsuperscript", "textit", "texttt", "scriptsize", "footnotesize", "begin", "end", "par"}
SYMBOLS = {
    "textbackslash",
    "textasciitilde",
    "textasciicircum",
    "textless",
    "textgreater",
    "textbar",
    "symbol",
    "ldots",
}
MATHS = {"times", "pm", "infty", "neq", "leq", "geq", "rightarrow", "mu", "pi", "Delta", "surd", "cdot", "noindent"}
KNOWN = {*ALLOWED, *SYMBOLS, *MATHS, "usepackage"}.union(*OWN.values())


def _hostile() -> ReportModel:
    model = report()
    evil = r"\input{/etc/passwd} \end{longtable} & $x_1^2$ % # {" + HOSTILE + " 你好 \\\\[1cm]"
    rows = [row for row in model.rows if (row.adapter, row.variant) != ("trl", "sync")]
    return replace(model, title=evil, rows=[*rows, empty_row("trl", SYNC, "failed", evil)])


def _plain(text: str) -> str:
    """Without escaped characters, so that what is left of a special one is meant."""
    return re.sub(r"\\[\\&%$#_{} ,]", "", text)


def _table() -> str:
    return render_latex(report())["headlines-free.tex"]


@pytest.mark.parametrize("model", [report(), _hostile()], ids=["plain", "hostile"])
def test_only_commands_of_ours_are_in_it(model: ReportModel) -> None:
    text = render_latex(model)["headlines-free.tex"]
    assert set(re.findall(r"\\([A-Za-z]+)", _plain(text))) <= KNOWN
    body = _plain(text)
    assert body.count("{") == body.count("}")
    assert body.count("$") % 2 == 0
    assert set(re.findall(r"\\(?:begin|end)\{(\w+)\}", body)) == {"longtable"}


def test_every_row_has_every_column() -> None:
    lines = _table().splitlines()
    rows = [
        line
        for line in lines
        if line.endswith(r"\\") and " & " in line and not line.startswith((r"\multicolumn", r"\caption"))
    ]
    assert len(rows) > 5
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {3}


def test_it_says_what_it_is() -> None:
    text = _table()
    for word in ("2026-{}11-{}29", "0.1.0", "Example CPU", "median", "nothing is ranked", "5 repeats", "measured here"):
        assert word in text, word


def test_a_dash_has_its_reason_below_and_a_value_its_interval() -> None:
    text = _table()
    (number,) = re.findall(r"&[^&]*& --\\textsuperscript\{\[(\d+)\]\}", text)
    assert f"[{number}] weights are shared: the trained module generates" in text
    assert re.search(r"\d+ \{\\scriptsize \{\[\}\d+ -- \d+\{\]\}\}", text)
    assert r"$\infty$" in text


def test_the_definitions_stand_below() -> None:
    for said in report().definitions.values():
        if said.tag in {"output_tokens_per_second", "lag_max"}:
            assert f"\\textsuperscript{{{said.number}}}{escape(said.title)}: " in _table()


def test_many_systems_are_several_tables() -> None:
    model = report()
    names = [f"system-{n}" for n in range(MOST_COLUMNS + 1)]
    model.cells = [model.cells[0] | {"adapter": name, "cell_id": name} for name in names]
    text = render_latex(model)["headlines-free.tex"]
    assert text.count(r"\begin{longtable}") == 2


@settings(max_examples=60)
@given(st.text(max_size=40))
def test_an_escaped_text_holds_no_command(text: str) -> None:
    plain = _plain(escape(text))
    assert set(re.findall(r"\\([A-Za-z]+)", plain)) <= SYMBOLS | MATHS | {"texttt"}
    assert not re.search(r"[%#&^]", plain.replace("$^2$", ""))
    assert plain.count("{") == plain.count("}")


@pytest.mark.skipif(LATEX is None, reason="there is no pdflatex on this machine")
@pytest.mark.parametrize("model", [report(), _hostile()], ids=["plain", "hostile"])
def test_latex_compiles_it(model: ReportModel, tmp_path: Path) -> None:
    for name, text in render_latex(model).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [str(LATEX), "-interaction=nonstopmode", "-halt-on-error", "headlines.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "headlines.pdf").exists()
