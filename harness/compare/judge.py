"""Is a system slower or larger than its baseline? A verdict on each measure named in advance, or why there is none.

A verdict (better, worse) needs both: an adjusted p below 5 % and an effect past the margin. "No change" needs both too:
that the change sought would have been found, and that the interval holds none as large.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.compare.effect import Effect, detectable, holm, paired_effect, welch_effect
from harness.compare.explain import explained_by
from harness.compare.gates import (
    FOREIGN_LIMIT,
    GATES,
    LEAST_PAIRS,
    LEAST_UNPAIRED,
    LEVEL,
    STATED_MARGIN,
    STEP,
    weights_of,
)
from harness.compare.hindrances import doubt, hindrance, remarks
from harness.compare.judgement import Judgement
from harness.compare.lengths import GUARDED_TRACK, length_difference
from harness.compare.null_test import NullTest
from harness.compare.places import label_at
from harness.compare.results import CellResult, GroupKey, groups_of
from harness.compare.totals import by_repeat, gating_figures
from harness.measure.api import catalogue

__all__ = ["Judgement", "judge", "judge_all"]
FAR = 99.0
"""A change past which nobody needs to know it: few pairs on a busy machine give any."""


@dataclass(frozen=True)
class _Rule:
    """What all judgements of a comparison share."""

    null: NullTest | None
    foreign_limit: float

    def margin_of(self, name: str, length: float) -> float:
        """A relative change up to which a figure counts as unchanged; `length`: by how much the texts differ."""
        return max(self.null.margin_of(name) if self.null else STATED_MARGIN, length)


@dataclass(frozen=True)
class _Draft:
    """A judgement whose effect is known and whose verdict waits for the others of the comparison."""

    judgement: Judgement
    effect: Effect | None
    doubt: str | None


def judge(
    cells: Sequence[CellResult],
    subject: str,
    baseline: str,
    null: NullTest | None,
    *,
    foreign_limit: float = FOREIGN_LIMIT,
) -> list[Judgement]:
    """Hold one system against another, on every layout and track that both were planned on.

    All judgements that come back are one comparison: the chance that a thing held against itself is called better or
    worse in any of them is at most `LEVEL`.

    Args:
        cells: those of a run, of any systems, however they ended; not those of its A/A test.
        subject, baseline: their labels.
        null: the A/A test of the machine; without one the margin is the stated one.
        foreign_limit: cores that other processes may use while a cell runs.
    """
    groups = groups_of(cells)
    rule = _Rule(null, foreign_limit)
    places = [key[1:] for key in groups if key[0] == subject and (baseline, *key[1:]) in groups]
    drafts = [draft for place in places for draft in _drafts(groups, (subject, *place), baseline, rule)]
    return _concluded(drafts, groups)


def judge_all(
    cells: Sequence[CellResult], baseline: str, nulls: Mapping[str, NullTest], foreign_limit: float = FOREIGN_LIMIT
) -> list[Judgement]:
    """Hold every other system against one, in the order of their names, each against the cells of it that ran in the
    same place. Each is a comparison of its own.

    Args:
        nulls: the A/A tests by their place: what one shows of its machine says nothing of another.
        foreign_limit: as in `judge`.
    """
    found: list[Judgement] = []
    for subject, place in sorted({cell.adapter: cell.place for cell in cells}.items()):
        its = label_at(baseline, place)
        if subject != its:
            found += judge(cells, subject, its, nulls.get(place), foreign_limit=foreign_limit)
    return found


def _drafts(groups: dict[GroupKey, list[CellResult]], key: GroupKey, baseline: str, rule: _Rule) -> list[_Draft]:
    subject, layout, track = key
    ours, theirs = groups[key], groups[baseline, layout, track]
    figures = gating_figures(ours, theirs)
    tags = {name: (figure.tag, figure.variant) for name, figure in figures.items()} or {STEP: (STEP, "")}
    kinds = {kind.tag: kind for kind in catalogue()}
    stopped = hindrance({place: group for place, group in groups.items() if place[2] == track}, key, baseline)
    length = length_difference(ours, theirs) if track == GUARDED_TRACK else 0.0
    drafts = []
    for name, (tag, variant) in sorted(tags.items(), key=lambda item: [g.measure for g in GATES].index(item[1][0])):
        kind = kinds[tag]
        fields = (subject, baseline, layout, track, tag, variant, kind.unit, kind.direction)
        margin = rule.margin_of(name, length)
        if stopped:
            judgement = Judgement(*fields, stopped.state, reason=stopped.reason, cause=stopped.cause, margin=margin)
            drafts.append(_Draft(judgement, None, None))
        else:
            drafts.append(_measured(Judgement(*fields, "cannot tell", margin=margin), ours, theirs, rule))
    return drafts


def _measured(blank: Judgement, ours: Sequence[CellResult], theirs: Sequence[CellResult], rule: _Rule) -> _Draft:
    """The effect of one figure, where enough repeats have it."""
    own, its = by_repeat(ours, blank.name), by_repeat(theirs, blank.name)
    if not own or not its:
        only, other = (blank.adapter, theirs) if own else (blank.baseline, ours)
        value = next((found for cell in other if (found := cell.find(blank.name))), None)
        why = f": {value.reason}" if value and value.reason else ""
        reason = f"only {only} has this figure{why}"
        return _Draft(replace(blank, state="not comparable", reason=reason), None, None)
    paired = bool({cell.repeat for cell in ours} & {cell.repeat for cell in theirs})
    shared = sorted(set(own) & set(its))
    pairs = len(shared) if paired else min(len(own), len(its))
    said = "; ".join(remarks(ours, theirs))
    blank = replace(blank, pairs=pairs, paired=paired, reason=said)
    least = LEAST_PAIRS if paired else LEAST_UNPAIRED
    few = f"only {pairs} {_pairs(paired, pairs)} ended well, and a verdict takes {least}"
    if pairs < 2:
        return _Draft(blank, None, few)
    if paired:
        effect = paired_effect([own[k] for k in shared], [its[k] for k in shared])
    else:
        effect = welch_effect(list(own.values()), list(its.values()))
    low, high = effect.interval
    why_not = few if pairs < least else doubt([*ours, *theirs], rule.null, rule.foreign_limit)
    return _Draft(replace(blank, effect=effect.ratio, low=low, high=high, p=effect.p), effect, why_not)


def _pairs(paired: bool, count: int) -> str:
    name = "pair" if paired else "repeat"
    return (name if count == 1 else f"{name}s") + ("" if paired else " of one side")


def _concluded(drafts: Sequence[_Draft], groups: dict[GroupKey, list[CellResult]]) -> list[Judgement]:
    """Holm over all figures that have an effect, then the state of each."""
    tested = {str(number): draft for number, draft in enumerate(drafts) if draft.effect is not None}
    shares = _weights(tested)
    p_values = {number: draft.effect.p for number, draft in tested.items() if draft.effect is not None}
    adjusted = holm(p_values, shares)
    whole = sum(shares.values())
    concluded = []
    for number, draft in enumerate(drafts):
        found = draft.judgement
        if draft.effect is not None and found.margin is not None:
            level = LEVEL * shares[str(number)] / whole
            least = detectable(draft.effect, level, found.margin)
            found = replace(found, p_adjusted=adjusted[str(number)], detectable=least)
            found = _verdict(found, draft.effect, draft.doubt)
        elif draft.doubt:
            found = replace(found, reason=_joined(draft.doubt, found.reason))
        concluded.append(_explained(found, groups))
    return concluded


def _weights(tested: dict[str, _Draft]) -> dict[str, float]:
    """Weights of the gates, by the number of the draft; each layout and track has the same share."""
    found: dict[str, float] = {}
    for place in {(draft.judgement.layout, draft.judgement.track) for draft in tested.values()}:
        here = {k: d.judgement.name for k, d in tested.items() if (d.judgement.layout, d.judgement.track) == place}
        weights = weights_of(here.values())
        found |= {number: weights[name] for number, name in here.items()}
    return found


def _verdict(found: Judgement, effect: Effect, doubt: str | None) -> Judgement:
    assert found.margin is not None
    assert found.detectable is not None
    assert found.p_adjusted is not None
    if doubt:
        return replace(found, reason=_joined(doubt, found.reason))
    sure, past = found.p_adjusted < LEVEL, abs(effect.shift) > math.log1p(found.margin)
    if sure and past:
        better = (effect.shift < 0) == (found.direction == "lower")
        return replace(found, state="better" if better else "worse")
    sought = next(gate.sought for gate in GATES if gate.measure == found.measure)
    if found.detectable > sought:
        why = f"it could not have found less than {_size(found.detectable)}, and {100 * sought:g}% is sought"
    elif abs(effect.shift) + effect.half > math.log1p(sought):
        low, high = (bound - 1 for bound in effect.interval)
        why = f"its interval, {low:+.1%} to {high:+.1%}, holds a change of the {100 * sought:g}% that is sought"
    else:
        small = (
            f"a difference of {effect.ratio - 1:+.1%} is there, within the margin of {found.margin:.1%}" if sure else ""
        )
        return replace(found, state="no change", reason=_joined(small, found.reason))
    return replace(found, reason=_joined(why, found.reason))


def _size(change: float) -> str:
    if change < 1:
        return f"{change:.1%}"
    return f"a factor of {1 + change:.3g}" if change < FAR else "a hundredfold"


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _explained(found: Judgement, groups: dict[GroupKey, list[CellResult]]) -> Judgement:
    if found.state not in {"better", "worse"}:
        return found
    place = found.layout, found.track
    ours, theirs = groups[found.adapter, *place], groups[found.baseline, *place]
    return replace(found, explained_by=explained_by(found, ours, theirs))
