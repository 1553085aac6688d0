"""report.md: the same report for a terminal, a pull request, or the published tables."""

from dataclasses import astuple
from typing import Any

from harness.compare.drill_evidence import short
from harness.compare.statistics import INTERVAL_NOTE
from harness.report import format as fmt
from harness.report.drills import counts_of, ending, items_of, title_of
from harness.report.ingested import series_lines, spoken
from harness.report.judgements import JUDGED, baselines, judged_view, null_words
from harness.report.learning import LEARNING, check_title
from harness.report.markup import code, escape, grid
from harness.report.model import Axis, FidelityRow, ReportModel
from harness.report.table import Entry, Table, comparison
from harness.report.views import axes_view, cells_view, completions_view, counts, fidelity_view

CALM = "Nothing stands out: all cells ended well, the ledgers are lawful, no share is out of bounds."


def render_markdown(model: ReportModel, figures: str = "figures") -> str:
    """The report as Markdown; `figures` is the path to the pictures, relative to the file."""
    lines = [f"# {escape(model.title)}", "", f"Run {code(model.run_id)}, {counts(model)}. "]
    lines[-1] += "Frameworks stand in the order of their names; nothing is ranked."
    lines += ["", *_summary(model)]
    for track in model.tracks:
        lines += _comparison(model, track)
    lines += (
        _ingested(model)
        + _judgements(model)
        + _learning(model)
        + _drills(model)
        + _figures(model, figures)
        + _axes(model)
    )
    lines += _fidelity(model) + _self_report(model) + _cells(model) + _completions(model) + _definitions(model)
    return "\n".join(lines).rstrip() + "\n"


def _summary(model: ReportModel) -> list[str]:
    lines = []
    for name, facts in (("What ran", model.task), ("Where", model.machine), ("When, and by which code", model.code)):
        lines.append(f"- **{name}**: " + "; ".join(f"{key} {escape(value)}" for key, value in facts.items()))
    named = sorted(model.adapters.items())
    systems = (f"{escape(name)} ({escape(said['title'])} {escape(said['version'])})" for name, said in named)
    lines += ["- **Systems**: " + ", ".join(systems), "", "## What to distrust first", ""]
    if not model.cautions:
        return [*lines, CALM, ""]
    return [*lines, *(f"{i}. **{escape(c.about)}**: {escape(c.text)}" for i, c in enumerate(model.cautions, 1)), ""]


def _entry(entry: Entry, repeats: int) -> str:
    note = f" [{entry.note}]" if entry.note else ""
    if not entry.valued:
        return entry.text + note
    parts = [f"**{entry.text}**"]
    parts += [entry.interval if entry.interval.startswith("±") else f"({entry.interval})"] if entry.interval else []
    parts += [f"n = {entry.n}"] if entry.n != repeats else []
    parts += [entry.ratio.replace("[", "(").replace("]", ")")] if entry.ratio else []
    parts += ["*not comparable*"] if entry.state == "not comparable" else []
    return " ".join(parts) + note


def _comparison(model: ReportModel, track: str) -> list[str]:
    table = comparison(model, track)
    several = len(model.tracks) > 1
    lines = [f"## Comparison{', track ' + fmt.words(track) if several else ''}", ""]
    ratio = f"then the ratio to {escape(model.baseline)}, paired by repeat"
    lines += [f"Median (95 % interval), {ratio}. {INTERVAL_NOTE}", ""]
    for topic in table.topics:
        lines += [f"### {topic.name.capitalize()}", "", *_topic(model, table, topic.name)]
    lines += [f"{number}. {escape(text)}" for number, text in enumerate(table.notes, 1)]
    return [*lines, ""] if table.notes else lines


def _topic(model: ReportModel, table: Table, name: str) -> list[str]:
    topic = next(topic for topic in table.topics if topic.name == name)
    head = ["figure", "unit", *(f"{adapter} · {fmt.words(layout)}" for adapter, layout in table.columns)]
    rows = []
    for family in topic.families:
        definition = family.definition
        for line in family.lines:
            label = f"{escape(definition.title)} <sup>{definition.number}</sup>"
            label += f" · {escape(fmt.words(line.variant))}" if line.variant else ""
            rows.append([label, line.unit, *(_entry(entry, model.repeats) for entry in line.entries)])
    return grid(head, rows)


def _ingested(model: ReportModel) -> list[str]:
    if not (said := spoken(model)):
        return []
    lines = ["## What the framework wrote", "", said["lead"], ""]
    lines += [f"- {escape(words)}" for words in (*said["files"], *said["seams"])]
    head = ["native key", "speaks of", "unit", "n", "first", "last", "figure of ours"]
    rows = [[code(line.key), *map(escape, astuple(line)[1:])] for line in series_lines(model)]
    return [*lines, "", *grid(head, rows)]


def _judgements(model: ReportModel) -> list[str]:
    if not model.judgements:
        return []
    said = " ".join(filter(None, [JUDGED, escape(null_words(model.null_test))]))
    head = ["system", "measure", "verdict", "change (95 % interval)", "smallest detectable", "margin", "why"]
    rows = [[escape(text) for text in astuple(line)] for line in judged_view(model)]
    return [f"## Held against {escape(baselines(model))}, measure by measure", "", said, "", *grid(head, rows)]


def _learning(model: ReportModel) -> list[str]:
    if not model.learning:
        return []
    lines = ["## Learning check", "", LEARNING, ""]
    for check in model.learning:
        lines += [f"- **{escape(check_title(check))}**: {escape(check['said'])}"]
    head = ["system", "samples", "its reward", f"of {escape(model.baseline)}", "expected, from", "to"]
    parts = [(check_title(check), part) for check in model.learning for part in check["parts"]]
    rows = [[escape(name), str(part["samples"]), *map(fmt.number, _numbers(part))] for name, part in parts]
    return [*lines, "", *(grid(head, rows) if rows else [])]


def _numbers(part: dict[str, Any]) -> list[float]:
    return [part[key] for key in ("value", "reference", "low", "high")]


def _drills(model: ReportModel) -> list[str]:
    if not model.verdicts:
        return []
    said = f"Cells that were disturbed on purpose; they stand in no comparison. {counts_of(model)}."
    lines = ["## Drills", "", said, ""]
    table = [[escape(s) for s in (title_of(v), v["word"], items_of(v), v["cost"])] for v in model.verdicts]
    lines += grid(["drill", "verdict", "items of the checkpoint", "cost"], table) if len(table) > 1 else []
    for verdict in model.verdicts:
        lines += [f"### {escape(title_of(verdict))}", "", f"**{escape(verdict['word'])}.**", ""]
        lines += [f"- cost: {escape(verdict['cost'])}", f"- history: {escape(verdict['apart'])}"]
        lines += [f"- attempt {one['attempt']}: {escape(ending(one))}" for one in verdict["attempts"]]
        checks = [[escape(c["name"]), escape(c["result"]), escape(c["said"])] for c in verdict["checks"]]
        lines += ["", *grid(["check", "result", "evidence"], checks)]
        if verdict["items"]:
            lines += grid(["item", "state", "saved", "found", "evidence"], [_item(item) for item in verdict["items"]])
    return lines


def _item(item: dict[str, Any]) -> list[str]:
    digests = [code(short(item[key])) for key in ("saved", "found")]
    return [escape(fmt.words(item["item"])), escape(item["state"]), *digests, escape(item["evidence"])]


def _figures(model: ReportModel, folder: str) -> list[str]:
    lines = ["## Figures", ""]
    for figure in model.figures:
        lines += [f"**{escape(figure.title)}.** {figure.caption}", ""]
        drawn = f"![{escape(figure.title)}]({folder}/{figure.name}.svg)"
        lines += [f"Not drawn: {escape(figure.reason)}." if figure.reason else drawn, ""]
    return lines


def _axis(axis: Axis | None) -> str:
    if axis is None:
        return fmt.NOTHING
    seen = axis.measured is not None
    measured = f"measured: {escape(axis.measured)}" if seen else f"not measured: {escape(axis.reason)}"
    where = ", ".join(escape(part) for part in (axis.source, axis.version, axis.date) if part)
    values = f"{', '.join(map(code, axis.values))}: " if axis.values else ""
    said = axis.declared is not None
    declared = f"declared: {values}{escape(axis.declared)} ({where})" if said else "declares nothing"
    marks = ["**differs**"] if axis.differs else []
    marks += [f"**stale**: {escape(axis.stale)}"] if axis.stale else []
    return "<br>".join([measured, declared, *marks])


def _axes(model: ReportModel) -> list[str]:
    rows = [[line.title, *(_axis(axis) for axis in line.entries)] for line in axes_view(model)]
    return ["## Architectural axes", "", *(grid(["axis", *model.names], rows) if rows else ["None declared.", ""])]


def _setting(row: FidelityRow | None) -> str:
    if row is None:
        return fmt.NOTHING
    grade = "" if row.grade == "exact" else f" **{row.grade}**"
    return code(fmt.setting(row.in_force)) + grade + (f" {escape(row.note)}" if row.note else "")


def _fidelity(model: ReportModel) -> list[str]:
    lines = ["## Task fidelity", ""]
    for table in fidelity_view(model):
        head = ["setting", "asked", *(f"{adapter} · {fmt.words(layout)}" for adapter, layout in table.columns)]
        rows = [[code(name), code(asked), *(_setting(e) for e in entries)] for name, asked, entries in table.lines]
        lines += [f"Track {fmt.words(table.track)}: {table.summary}", ""]
        lines += grid(head, rows)
    return lines


def _self_report(model: ReportModel) -> list[str]:
    head = ["figure", "system", "theirs", "ours", "theirs / ours", "what theirs counts", "why it differs"]
    rows = []
    for s in model.self_report:
        own = f"{fmt.quantity(s.ours, s.unit)} {code(s.measure)}"
        ours = own if s.ours is not None else escape(s.reason or fmt.NOTHING)
        who = f"{escape(s.adapter)} · {fmt.words(s.track)}"
        words = [escape(s.definition), escape(s.differs_because)]
        rows.append([code(s.key), who, fmt.number(s.theirs), ours, fmt.times(s.ratio), *words])
    nothing = ["No framework printed a figure of its own.", ""]
    return ["## Self-report check", "", *(grid(head, rows) if rows else nothing)]


def _cells(model: ReportModel) -> list[str]:
    head = ["cell", "status", "wall time", "cores others used", "reason"]
    rows = [
        [code(c["cell_id"]), _status(c), _wall(c), fmt.number(c["foreign_cores"]), escape(c["reason"] or "")]
        for c in cells_view(model)
    ]
    lines = ["## Cells", "", *grid(head, rows), "### Ledger check", ""]
    if not model.violations:
        return [*lines, "The ledgers are whole and lawful.", "", *_findings(model)]
    broken = [[code(v["rule"]), code(v["table"]), escape(v["where"]), escape(v["detail"])] for v in model.violations]
    return [*lines, *grid(["rule", "table", "where", "what was found"], broken), *_findings(model)]


def _findings(model: ReportModel) -> list[str]:
    lines = ["### Audit of the figures", ""]
    if not model.findings:
        return [*lines, "No figure is impossible, and none contradicts another, by the rules of `rlaxes audit`.", ""]
    told = [
        [code(f["rule"]), f["severity"], escape(f["case"]), escape(f["evidence"]), escape(f["would_be_true_if"])]
        for f in model.findings
    ]
    return [*lines, *grid(["rule", "severity", "where", "evidence", "would be true if"], told)]


def _status(cell: dict[str, Any]) -> str:
    return fmt.words(cell["status"]) + (f" ({cell['cause']})" if cell["cause"] else "")


def _wall(cell: dict[str, Any]) -> str:
    return fmt.NOTHING if cell["wall_s"] is None else fmt.quantity(cell["wall_s"], "s")


def _completions(model: ReportModel) -> list[str]:
    lines = ["## What the policies wrote", ""]
    for name, group in completions_view(model):
        rows = [[code(c.sample_id), fmt.number(c.reward), c.stop_reason, escape(c.text)] for c in group]
        lines += [f"{escape(name)}:", "", *grid(["sample", "reward", "stop", "completion"], rows)]
    return lines


def _definitions(model: ReportModel) -> list[str]:
    lines = ["## Definitions", ""]
    for d in model.definitions.values():
        head = f"{d.number}. **{escape(d.title)}** {code(d.tag)}, in {escape(d.unit)}. "
        lines.append(f"{head}{escape(d.definition)} (module step {escape(d.source)})")
    return lines
