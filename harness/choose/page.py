"""The answer as a page for a decision record: Markdown, and one self-contained HTML file."""

from collections.abc import Iterator

from harness.choose.answer import MET, STATES, Answer, Evidence
from harness.choose.asked import NEEDS, Requirement
from harness.choose.choice import SIGNED, Choice
from harness.choose.evidence import GRADES, Framework
from harness.choose.openings import AFTERWARDS
from harness.choose.topics import TOPICS
from harness.report.grades import MEANINGS
from harness.report.html import environment
from harness.report.markup import code, escape, grid

LEAD = (
    "Frameworks stand in the order of their names. Nothing is added up and nothing is ranked: what a requirement is "
    "worth is the team's to say."
)
CAUTIONS = (
    "Each requirement is judged by itself. That two hold together, in one configuration, is shown only by a run that "
    "has both.",
    "What the ledger of a small model on a CPU shows, such as who waited for whom, is shown of that run. It says "
    "nothing of speed or memory on your machines.",
    "A lag is counted in optimizer updates between the version that sampled a token and the one that is trained on "
    "it. A bound that a framework declares is in a unit of its own, which stands in the note.",
    "What is not met by declaration was not found by whoever read the pinned source: open the file that the note names "
    "before you strike a framework off for it.",
    "What is declared may need a condition, which stands in the note: an experimental class, one backend of several, "
    "another layout.",
)
NO_COMMAND = "no command"
NEED_TITLES = {"must": "Must", "wish": "Wish", "indifferent": "Indifferent (shown, not asked for)"}


def choice_html(choice: Choice) -> str:
    """The page."""
    context = {
        "choice": choice,
        "commit": commit(choice),
        "needs": [(NEED_TITLES[need], choice.rows(need)) for need in NEEDS if choice.rows(need)],
        "known": _known,
        "no_command": NO_COMMAND,
        "afterwards": AFTERWARDS,
        "lead": LEAD,
        "cautions": CAUTIONS,
        "topics": TOPICS,
        "states": STATES,
        "meanings": {grade: MEANINGS[grade] for grade in GRADES},
        "signed": SIGNED,
    }
    return environment().get_template("choice.html.j2").render(**context)


def commit(choice: Choice) -> str:
    """The rlaxes that answered, in words."""
    told = choice.rlaxes
    dirty = ", with uncommitted changes" if told.get("dirty") else ""
    return f"{told.get('version')}, commit {(told.get('commit') or 'unknown')[:12]}{dirty}"


def mark(answer: Answer) -> str:
    """The grade of an answer, in a word or two, with what makes it doubtful."""
    return ", ".join(filter(None, (answer.grade or "", "stale" if answer.stale else "")))


def choice_markdown(choice: Choice) -> str:
    """The page as Markdown; footnotes are numbers in brackets, explained below."""
    parts = (_head(choice), _matrix(choice), _open(choice), _evidence(choice), _how(), _decision())
    return "\n".join(line for part in parts for line in part).rstrip("\n") + "\n"


def _head(choice: Choice) -> Iterator[str]:
    today, days = choice.clock.today, choice.clock.stale_days
    yield from (f"# {escape(choice.title)}", "", LEAD, "")
    yield f"- date: {today}; evidence older than {days} days, or not told to be of the pinned version, is marked stale"
    yield f"- rlaxes {escape(commit(choice))}"
    yield f"- published runs that were read: {', '.join(map(code, choice.runs)) or 'none'}"
    yield f"- versions: {', '.join(escape(framework.title) for framework in choice.frameworks)}"
    yield from (f"- not asked: {', '.join(choice.not_asked) or 'nothing'}", "")


def _matrix(choice: Choice) -> Iterator[str]:
    yield from ("## Requirements, by framework", "")
    head = ["requirement", *(f"{escape(f.spec['title'])}" for f in choice.frameworks)]
    for need in NEEDS:
        rows = choice.rows(need)
        if not rows:
            continue
        yield from (f"### {NEED_TITLES[need]}", "")
        lines = [
            [f"{TOPICS[one.topic].title}: {escape(one.asked)}", *(_cell(choice, a) for a in told)] for one, told in rows
        ]
        yield from grid(head, lines)


def _asked(one: Requirement) -> str:
    return f"{TOPICS[one.topic].title}: {escape(one.asked)}"


def _cell(choice: Choice, answer: Answer) -> str:
    state = answer.state if answer.state == MET else f"**{answer.state}**"
    return f"{', '.join(filter(None, (state, mark(answer))))} [{choice.number(answer)}]"


def _open(choice: Choice) -> Iterator[str]:
    yield from ("## What would have to be measured", "")
    if not choice.open:
        yield from ("Nothing: every requirement that must be met rests on a measurement of the pinned version.", "")
        return
    yield "What is unknown or contradicted, and what must be met and rests on no measurement of the pinned version."
    yield from (f"After each command `{AFTERWARDS}`, then this page anew.", "")
    lines = [
        [
            code(entry.framework),
            code(entry.opening.command) if entry.opening.command else NO_COMMAND,
            "; ".join(f"{_asked(answer.requirement)} ({_known(answer)})" for answer in entry.about),
            escape(entry.opening.why),
        ]
        for entry in choice.open
    ]
    yield from grid(["framework", "command", "of which requirements", "why"], lines)


def _known(answer: Answer) -> str:
    return ", ".join(filter(None, (answer.state, mark(answer))))


def _evidence(choice: Choice) -> Iterator[str]:
    yield from ("## Evidence", "")
    for framework in choice.frameworks:
        yield from (f"### {escape(framework.title)}", "", _told(framework), "")
        yield from (f"- what ran here: {escape(line)}" for line in framework.ran)
        for answer in choice.of(framework.name):
            yield f"- [{choice.number(answer)}] {_asked(answer.requirement)}: {answer.state}"
            yield from (f"  - {_piece(piece)}" for piece in answer.evidence)
        yield ""


def _told(framework: Framework) -> str:
    runs = "run here by rlaxes" if framework.runs else "read and mapped here, not run"
    return f"{runs}; pinned {framework.spec['pinned']}; {escape(framework.sources)}"


def _piece(piece: Evidence) -> str:
    version = f" {piece.version}," if piece.version else ""
    stale = f"; **stale**: {escape(piece.stale)}" if piece.stale else ""
    against = "" if piece.meets else "against it: "
    return f"{piece.grade}: {against}{escape(piece.says)} ({code(piece.source)},{version} {escape(piece.date)}{stale})"


def _how() -> Iterator[str]:
    yield from ("## How to read it", "")
    yield from (f"- **{state}**: {means}" for state, means in STATES.items())
    yield from (f"- *{grade}*: {MEANINGS[grade]}" for grade in GRADES)
    yield from (f"- {caution}" for caution in CAUTIONS)
    yield ""


def _decision() -> Iterator[str]:
    yield from ("## Decision", "", "The team's to fill in; rlaxes decides nothing.", "")
    yield from (f"- {line}:" for line in SIGNED)
