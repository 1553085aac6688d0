"""The headline table for a paper: LaTeX that needs `booktabs` and `longtable`, both in every distribution."""

import re
from collections.abc import Iterator, Sequence

from harness.compare.statistics import INTERVAL_NOTE
from harness.report import format as fmt
from harness.report.grades import evidence_of_report
from harness.report.headlines import HEADLINES
from harness.report.model import ReportModel
from harness.report.table import Entry, Family, Line, Table, comparison, unit_beside
from harness.report.views import counts, visible

MOST_COLUMNS = 4
"""Systems side by side on a landscape page; more go into a further table."""
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\symbol{96}",
    '"': r"\symbol{34}",
    "[": "{[}",  # after the end of a row, [ and * would be read as its arguments
    "]": "{]}",
    "*": "{*}",
    "-": "-{}",  # two in a row are a dash
    "–": "--",
    "—": "---",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "≠": r"$\neq$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "µ": r"$\mu$",
    "π": r"$\pi$",
    "Δ": r"$\Delta$",
    "√": r"$\surd$",
    "²": "$^2$",
    "…": r"\ldots{}",
    "’": "'",
    "\u202f": r"\,",
    "\u00a0": "~",
} | {character: "\\" + character for character in "&%$#_{}"}
LATIN = re.compile(r"[ -~À-ÏÑ-ÖØ-Ýß-ïñ-öø-ýÿ]")
"""What the fonts of plain LaTeX have: no Ð, ð, Þ, þ."""
DOCUMENT = r"""\documentclass[10pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,landscape,margin=15mm]{geometry}
\usepackage{booktabs}
\usepackage{longtable}
\begin{document}
%s
\end{document}
"""


def render_latex(model: ReportModel) -> dict[str, str]:
    """By file name: a table of each track, to be included with `\\input`, and a document that shows them."""
    tracks = {f"headlines-{track}": _track(model, track) for track in model.tracks}
    files = {f"{name}.tex": text for name, text in tracks.items()}
    shown = "\n\\clearpage\n".join(f"\\input{{{name}}}" for name in tracks)
    return files | {"headlines.tex": DOCUMENT % shown}


def escape(text: str) -> str:
    """Untrusted text within a paragraph or a cell of a table: nothing in it is a command, and it stays on one line. A
    character that a Latin font lacks is written by its number."""
    return "".join(_escaped(character) for character in " ".join(visible(text).split()))


def _escaped(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    return character if LATIN.fullmatch(character) else rf"\texttt{{U+{ord(character):04X}}}"


def _track(model: ReportModel, track: str) -> str:
    table = comparison(model, track, HEADLINES)
    starts = range(0, len(table.columns), MOST_COLUMNS)
    parts = [_table(model, table, range(at, min(at + MOST_COLUMNS, len(table.columns)))) for at in starts]
    lines = [f"% {escape(model.run_id)}: needs \\usepackage{{booktabs,longtable}}", *parts, *_notes(table)]
    return "\n".join([*lines, *_definitions(table)]) + "\n"


def _table(model: ReportModel, table: Table, places: Sequence[int]) -> str:
    heads = [f"{escape(label)}, {escape(fmt.words(layout))}" for label, layout in (table.columns[p] for p in places)]
    rows = []
    for topic in table.topics:
        rows.append(rf"\multicolumn{{{len(places) + 2}}}{{@{{}}l}}{{\textit{{{escape(topic.name)}}}}} \\")
        rows += [_row(family, line, places) for family in topic.families for line in family.lines]
    titles = [r"\toprule", " & ".join(["figure", "unit", *heads]) + r" \\", r"\midrule"]
    head = [
        rf"\begin{{longtable}}{{@{{}}p{{68mm}}l{'l' * len(places)}@{{}}}}",
        rf"\caption{{{_caption(model, table)}}} \\",
        *titles,
        r"\endfirsthead",
        *titles,
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
    ]
    return "\n".join([r"{\footnotesize\setlength{\LTcapwidth}{\linewidth}", *head, *rows, r"\end{longtable}}"])


def _caption(model: ReportModel, table: Table) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in model.machine.items() if name != "profile")
    told = f"{model.title}, track {fmt.words(table.track)}, {model.created[:10]}: median [95 % interval] of "
    told += f"{model.repeats} repeats; {counts(model)}; evidence: {evidence_of_report(vars(model))}. "
    told += f"Machine: {machine}. Code: rlaxes {model.code.get('rlaxes')}. Run {model.run_id}. "
    told += f"Systems stand in the order of their names; nothing is ranked. {INTERVAL_NOTE}"
    return "".join(_escaped(character) for character in " ".join(told.split()))


def _row(family: Family, line: Line, places: Sequence[int]) -> str:
    name = family.definition.title + (f", {fmt.words(line.variant)}" if line.variant else "")
    marked = rf"{escape(name)}\textsuperscript{{{family.definition.number}}}"
    return " & ".join([marked, escape(unit_beside(name, line)), *(_entry(line.entries[p]) for p in places)]) + r" \\"


def _entry(entry: Entry) -> str:
    """A value with its interval; a dash, with the number of its remark, where there is none."""
    note = rf"\textsuperscript{{[{entry.note}]}}" if entry.note else ""
    if not entry.valued:
        return f"--{note}"
    differs = " $\\neq$" if entry.state == "not comparable" else ""
    bounds = rf" {{\scriptsize {escape(_bounds(entry.interval))}}}" if entry.interval else ""
    return f"{escape(entry.text)}{differs}{bounds}{note}"


def _bounds(interval: str) -> str:
    return interval if interval.startswith("±") else f"[{interval}]"


def _notes(table: Table) -> Iterator[str]:
    """Why a figure has no value, or what to know beside one."""
    yield from (rf"\par\noindent{{\scriptsize [{n}] {escape(text)}\par}}" for n, text in enumerate(table.notes, 1))


def _definitions(table: Table) -> Iterator[str]:
    for family in (family for topic in table.topics for family in topic.families):
        said = family.definition
        text = f"{escape(said.title)}: {escape(said.definition)}"
        yield rf"\par\noindent{{\scriptsize \textsuperscript{{{said.number}}}{text}\par}}"
