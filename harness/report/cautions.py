"""What to distrust first: everything in a run that could make one of its figures mean less than it seems."""

from collections.abc import Callable, Iterator

from harness.compare.gates import FOREIGN_LIMIT, STATED_MARGIN
from harness.compare.rows import Row
from harness.report import format as fmt
from harness.report.ingested import ingested_cautions
from harness.report.judgements import null_words, percent
from harness.report.measured import BARE, UNTRUSTED
from harness.report.model import Caution, ReportModel

UNATTRIBUTED_LIMIT = 0.05
BUSY_SHARE = 0.25
"""Load before the first cell, over the cores, from which on the machine was busy, where nothing better is known."""
CROWDED_SHARE = 1.5
"""The same before a later cell: what ran a moment ago may have used every core."""
FEW_REPEATS = 5
NOISY = 0.02
"""Spread from run to run from which five pairs hardly find a change of 5 %."""
COLUMN = ("adapter", "layout", "track")
COUNTED = {
    "support_violations": "tokens whose ratio is undefined: their behaviour log-probability is missing or infinite",
    "behavior_policy_misdeclared": "records whose log-probabilities are not of the distribution that was sampled",
    "decoding_not_modelled": "records sampled with a decoding that the trainer does not model",
    "faults": "faults, each in the ledger's table of that name",
    "token_closure_gap": "tokens that were generated and have no fate",
    "token_recount_gap": "tokens by which the spans and the rollouts differ",
}
"""Measures that are 0 in a run without blemish, and what a number other than 0 counts."""


def cautions_of(model: ReportModel) -> list[Caution]:
    """The cautions of a report, the worst first: lost data, then wrong data, then unequal work, then noise."""
    return [caution for find in FINDERS for caution in find(model)]


def _who(model: ReportModel, adapter: str, layout: str, track: str) -> str:
    """As short as the run allows."""
    parts = [adapter]
    parts += [fmt.words(layout)] if len({cell["layout"] for cell in model.cells}) > 1 else []
    parts += [fmt.words(track)] if len(model.tracks) > 1 else []
    return " · ".join(parts)


def _violations(model: ReportModel) -> Iterator[Caution]:
    if model.violations:
        rules = sorted({v["rule"] for v in model.violations})
        count = f"{len(model.violations)} violation{'s' if len(model.violations) > 1 else ''} ({', '.join(rules)})"
        if set(rules) <= set(UNTRUSTED):
            text = f"{count}: a ledger that is not the one that was written is not measured."
        else:
            text = f"{count}: figures drawn from the tables named below may be wrong."
        yield Caution("ledger check", text)


def _findings(model: ReportModel) -> Iterator[Caution]:
    """One of each rule: the first, and how many more there are."""
    for rule in dict.fromkeys(found["rule"] for found in model.findings):
        here = [found for found in model.findings if found["rule"] == rule]
        more = f", and {len(here) - 1} more findings of this rule" if len(here) > 1 else ""
        first = here[0]
        yield Caution("audit", f"{first['severity']}, {first['case']}: {first['evidence']} (rule {rule}{more}).")


def _simulated(model: ReportModel) -> Iterator[Caution]:
    for name, adapter in sorted(model.adapters.items()):
        if says := (adapter.get("capabilities") or {}).get("simulated"):
            yield Caution(name, f"{says}.")


def _unfinished(model: ReportModel) -> Iterator[Caution]:
    if model.finished is None:
        yield Caution("run", "it has not ended: cells are missing, and the same command goes on where it stopped.")


def _put_together(model: ReportModel) -> Iterator[Caution]:
    """Cells that did not run in turns with those that they are held against, and cells that had another try."""
    if torn := _torn_pairs(model):
        cells = "1 cell was" if len(torn) == 1 else f"{len(torn)} cells were"
        text = f"{cells} added later than others of the same repeat ({torn[0]} the first): they did not run in turns."
        yield Caution("run", text)
    redone = model.provenance.get("redone", [])
    if any(row["cell_id"].startswith("null-") for row in redone):
        text = (
            "the A/A test was run again, since the machine was too noisy at first, or disturbed; the last one counts."
        )
        yield Caution("machine", text)
    if again := [row for row in redone if not row["cell_id"].startswith("null-")]:
        first = again[0]
        more = f", and {len(again) - 1} more" if len(again) > 1 else ""
        yield Caution("run", f"{first['cell_id']} was run again after it failed ({first['reason']}){more}.")


def _torn_pairs(model: ReportModel) -> list[str]:
    """The cells that were added to the run when a cell of the same repeat was there already."""
    additions = model.provenance.get("additions", [])
    came = {cell: number for number, addition in enumerate(additions, start=1) for cell in addition["cells"]}
    first: dict[int, int] = {}
    for cell in model.cells:
        number = came.get(cell["cell_id"], 0)
        first[cell["repeat"]] = min(number, first.get(cell["repeat"], number))
    return [c["cell_id"] for c in model.cells if came.get(c["cell_id"], 0) > first[c["repeat"]]]


def _bad_cells(model: ReportModel) -> Iterator[Caution]:
    groups: dict[tuple[str, str, str, str, str], int] = {}
    for cell in model.cells:
        if cell["status"] != "ok":
            words = f"{fmt.words(cell['status'])}{' (' + cell['cause'] + ')' if cell['cause'] else ''}"
            key = (cell["adapter"], cell["layout"], cell["track"], words, cell["reason"] or "no reason given")
            groups[key] = groups.get(key, 0) + 1
    for (adapter, layout, track, words, reason), count in groups.items():
        cells = "1 cell" if count == 1 else f"{count} cells"
        yield Caution(_who(model, adapter, layout, track), f"{cells} {words}: {reason}.")


def _drills(model: ReportModel) -> Iterator[Caution]:
    for verdict in model.verdicts:
        if not verdict["continues"]:
            yield Caution(verdict["adapter"], f"its drill ended badly: {verdict['word']} (see Drills).")


def _bare_cells(model: ReportModel) -> Iterator[Caution]:
    bare = sorted({_who(model, *(c[key] for key in COLUMN)) for c in model.cells if not c.get("observed", True)})
    if bare:
        yield Caution(", ".join(bare), f"{BARE}; its wall time is in the table of cells.")


def _unattributed(model: ReportModel) -> Iterator[Caution]:
    for row in model.rows:
        if row.measure == "unattributed_share" and row.value is not None and row.value > UNATTRIBUTED_LIMIT:
            share, limit = fmt.number(100 * row.value), f"{100 * UNATTRIBUTED_LIMIT:g}"
            text = f"{share} % of its wall clock is in no span (limit {limit} %): its stage times may lack that much."
            yield Caution(_who(model, row.adapter, row.layout, row.track), text)


def _unsteady(model: ReportModel) -> Iterator[Caution]:
    """Of most repeats: by chance alone the rule finds something in one run of twenty."""
    dropped = {(r.adapter, r.layout, r.track): r.value for r in model.rows if r.measure == "warmup_steps_dropped"}
    for row in model.rows:
        cut = dropped.get((row.adapter, row.layout, row.track))
        if row.measure != "warmup_steps_by_rule" or cut is None:
            continue
        later = [steps for steps in row.repeats if steps is not None and steps > cut]
        never = len(row.repeats) - row.n if "not steady" in (row.reason or "") else 0
        if 2 * (len(later) + never) <= len(row.repeats):
            continue
        text = f"{cut:g} warm-up steps were dropped, and in most repeats its steps were steady only later"
        text += f", from {max(later):g} on at the latest." if later and not never else "."
        if 2 * never > len(row.repeats):
            text = f"{row.reason}: its rates are those of this stretch of the run, and of no steady state."
        yield Caution(_who(model, row.adapter, row.layout, row.track), text)


def _blemishes(model: ReportModel) -> Iterator[Caution]:
    for tag, words in COUNTED.items():
        rows = [row for row in model.rows if row.measure == tag and row.value]
        for column in dict.fromkeys((row.adapter, row.layout, row.track) for row in rows):
            here = [row for row in rows if (row.adapter, row.layout, row.track) == column]
            whole = max(row.value or 0.0 for row in here)
            yield Caution(_who(model, *column), f"{fmt.number(whole)} {words}{_by_variant(here, whole)}.")


def _by_variant(rows: list[Row], whole: float) -> str:
    """What kinds there are, with the count of each that is not all of them."""
    kinds = [row for row in rows if row.variant]
    named = [fmt.words(r.variant) + ("" if r.value == whole else f" {fmt.number(r.value or 0.0)}") for r in kinds]
    return f" ({', '.join(named)})" if named else ""


def _incomparable(model: ReportModel) -> Iterator[Caution]:
    rows = [row for row in model.rows if row.state == "not comparable"]
    for adapter, layout, track, reason in dict.fromkeys((r.adapter, r.layout, r.track, r.reason) for r in rows):
        yield Caution(_who(model, adapter, layout, track), f"not comparable: {reason}.")


def _fidelity(model: ReportModel) -> Iterator[Caution]:
    for adapter, layout, track in dict.fromkeys((f.adapter, f.layout, f.track) for f in model.fidelity):
        rows = [f for f in model.fidelity if (f.adapter, f.layout, f.track) == (adapter, layout, track)]
        off = [f"{row.setting} {row.grade}" for row in rows if row.grade != "exact"]
        if off:
            text = f"not the same task in every setting: {', '.join(off)} (see Task fidelity)."
            yield Caution(_who(model, adapter, layout, track), text)


def _axes(model: ReportModel) -> Iterator[Caution]:
    for axis in model.axes:
        if axis.differs:
            yield Caution(axis.adapter, f"declared and measured {fmt.words(axis.axis)} differ (see the axes).")


def _places(model: ReportModel) -> Iterator[Caution]:
    places = sorted({cell["place"] for cell in model.cells if cell.get("place")})
    if places:
        words = "hold against each other only ratios to the reference, each to that of its own place"
        yield Caution("machines", f"the columns ran in several places ({', '.join(places)}): {words}.")


def _repeats(model: ReportModel) -> Iterator[Caution]:
    if model.cells and model.repeats < FEW_REPEATS:
        words = "one repeat: no interval" if model.repeats == 1 else f"{model.repeats} repeats: the intervals are wide"
        yield Caution("repeats", f"{words}, so a difference between systems may be noise.")


def _null_test(model: ReportModel) -> Iterator[Caution]:
    """Whether this machine lets anything be judged."""
    null = model.null_test
    if null and (null.get("failed") or null["noise"] is None or null["noise"] > NOISY):
        yield Caution("machine", null_words(null))
    elif not null and any(judgement.effect is not None for judgement in model.judgements):
        text = f"no A/A test was run: the margin of {percent(STATED_MARGIN)} is a stated one, not that of this machine."
        yield Caution("machine", text)


def _machine(model: ReportModel) -> Iterator[Caution]:
    load, cores = model.provenance.get("load", {}).get("before"), model.provenance.get("cores")
    if not cores:
        return
    foreign = [cell["foreign_cores"] for cell in model.cells if cell.get("foreign_cores") is not None]
    if foreign:
        if crowded := [one for one in foreign if one > FOREIGN_LIMIT]:
            count = f"while {len(crowded)} of {len(foreign)} cells ran, others used more than {FOREIGN_LIMIT:g}"
            yield Caution("machine", f"{count} of the {cores} cores, up to {max(crowded):.2g}.")
        return
    loads = [cell["load_before"][0] for cell in model.cells if cell.get("load_before")]
    crowded = [one for one in loads if one > CROWDED_SHARE * cores]
    if crowded:
        count = f"{len(crowded)} of {len(loads)} cells began at a load above {CROWDED_SHARE * cores:g}"
        yield Caution("machine", f"{count}, up to {max(crowded):g}: something else used the {cores} cores.")
    elif load and load[0] > BUSY_SHARE * cores:
        yield Caution("machine", f"it was busy when the run began: load {load[0]:g} on {cores} cores.")


def _code(model: ReportModel) -> Iterator[Caution]:
    if model.provenance.get("rlaxes", {}).get("dirty"):
        yield Caution("rlaxes", "the checkout held uncommitted changes: the commit alone does not reproduce this run.")


FINDERS: tuple[Callable[[ReportModel], Iterator[Caution]], ...] = (
    _violations,
    _simulated,
    ingested_cautions,
    _findings,
    _unfinished,
    _put_together,
    _bad_cells,
    _drills,
    _bare_cells,
    _unattributed,
    _unsteady,
    _blemishes,
    _incomparable,
    _fidelity,
    _axes,
    _places,
    _repeats,
    _null_test,
    _machine,
    _code,
)
