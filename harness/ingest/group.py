"""Which files are of one run: told by what they say, and only then by where they lie."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.ingest.cells import Cells
from harness.ingest.keymap import framework_of
from harness.ingest.reading import UNKNOWN
from harness.ingest.series import Series
from harness.ingest.staged import StagedFile

SAME_SHARE = 0.95
"""Of the common cells of two files of one run, how many have to agree: a torn end and a resumed part may differ."""
SAME_KEYS = 0.9
"""Of the keys of two files that are one run before and after a restart, how many both have."""


@dataclass
class Group:
    """Files of one run. `base` is what to add to the numbers of a file's attempts: a file that goes on after another
    counts on from it. `told_twice` are the series of a file that another has too and tells the steps of. `joined`
    says why each further file is taken to be of the run."""

    files: list[StagedFile]
    base: dict[str, int] = field(default_factory=dict)
    told_twice: dict[str, set[int]] = field(default_factory=dict)
    joined: list[str] = field(default_factory=list)

    def add(self, file: StagedFile, base: int, why: str) -> None:
        """Take a file in."""
        self.files.append(file)
        self.base[file.name] = base
        self.joined.append(f"{file.name}: {why}")

    def add_before(self, file: StagedFile, other: StagedFile) -> None:
        """Take in what was written before another of its files, so that the attempts of that one count on from it."""
        base, more = self.base[other.name], _most_attempts(file)
        self.base = {name: number + more if number >= base else number for name, number in self.base.items()}
        self.add(file, base, f"was left where {other.name} goes on, beside it")

    def add_part(self, file: StagedFile, other: StagedFile) -> None:
        """Take in what the same dump has of another step; of its files, which may be thousands, it is told once."""
        self.files.append(file)
        self.base[file.name] = self.base[other.name]
        told = f"{file.found.part_of}: a file a step of one dump"
        if told not in self.joined:
            self.joined.append(told)


def group_files(files: Sequence[StagedFile], series: Sequence[Series], cells: Cells) -> list[Group]:
    """The runs that the files are of, in the order of their first files. The largest files are asked first, so that
    the others find the whole of their run."""
    groups: list[Group] = []
    order = {file.name: number for number, file in enumerate(files)}
    for file in sorted(files, key=lambda one: (-one.values, order[one.name])):
        if not any(_joins(file, group, series, cells) for group in groups):
            groups.append(Group([file], {file.name: 0}))
    groups.sort(key=lambda group: min(order[file.name] for file in group.files))
    for group in groups:
        group.files.sort(key=lambda one: (group.base[one.name], order[one.name]))
    return groups


def framework_of_file(file: StagedFile, series: Sequence[Series]) -> str:
    """Whose log it is; of a format that anyone may write, by all its keys where its head did not tell."""
    if file.found.framework != UNKNOWN:
        return file.found.framework
    return framework_of({series[number].key for number in file.series}) or UNKNOWN


def _joins(file: StagedFile, group: Group, series: Sequence[Series], cells: Cells) -> bool:
    """Whether a file is of the run of a group; then it is taken in."""
    names = {framework_of_file(one, series) for one in (file, *group.files)} - {UNKNOWN}
    if len(names) > 1:
        return False
    if not file.values:
        near = bool(file.settings) and any(_near(file, one) for one in group.files)
        if near:
            group.add(file, 0, "settings, beside a file of the run")
        return near
    contradicted = False
    for other in group.files:
        if file.found.part_of and file.found.part_of == other.found.part_of:
            group.add_part(file, other)
            return True
        if not file.series & other.series:
            continue
        stepless = file.steps is None or other.steps is None
        if stepless:
            found = cells.agreement_in_order(other.cells, file.cells)
        else:
            found = cells.agreement(other.cells, file.cells, other.values)
        if found.common and found.same >= SAME_SHARE * found.common and found.telling:
            group.add(file, group.base[other.name], f"{found.same} of {found.common} numbers as in {other.name}")
            if stepless:
                # Of two that say the same, the one that tells the steps is kept.
                told_twice, counted = (other, file) if file.steps else (file, other)
                group.told_twice[told_twice.name] = told_twice.series & counted.series
            return True
        if _goes_on(other, file):
            base = group.base[other.name] + _most_attempts(other)
            group.add(file, base, f"goes on where {other.name} was left, beside it")
            return True
        if _goes_on(file, other):
            group.add_before(file, other)
            return True
        contradicted = True
    complementary = not contradicted and any(_complementary(file, one) for one in group.files)
    if complementary:
        group.add(file, 0, "other numbers of the same steps, beside a file of the run")
    return complementary


def _near(one: StagedFile, other: StagedFile) -> bool:
    """Whether they lie in one folder, or one in a folder within the other's."""
    here, there = Path(one.name).parent, Path(other.name).parent
    return here == there or here.parent == there or there.parent == here


def _complementary(file: StagedFile, other: StagedFile) -> bool:
    """Whether they are two views of the same steps: a trainer's and an orchestrator's, a console and a file."""
    mine, theirs = file.steps, other.steps
    views = file.found.shape != other.found.shape or not file.attempts.keys() & other.attempts.keys()
    return bool(views and _near(file, other) and mine and theirs and mine[0] <= theirs[1] and theirs[0] <= mine[1])


def _goes_on(before: StagedFile, after: StagedFile) -> bool:
    """Whether a file is what the same program wrote after a restart: it lies beside the other, has the same keys, ends
    after it, and begins within it or right behind it, though not where runs begin."""
    mine, theirs = after.steps, before.steps
    if not (_near(before, after) and before.found.shape == after.found.shape and mine and theirs):
        return False
    alike = len(before.series & after.series) >= SAME_KEYS * len(before.series | after.series)
    stride = max(1, (theirs[1] - theirs[0]) // max(1, before.blocks - 1))
    return alike and theirs[0] + stride < mine[0] <= theirs[1] + stride and mine[1] > theirs[1]


def _most_attempts(file: StagedFile) -> int:
    return max((len(found) for found in file.attempts.values()), default=1)
