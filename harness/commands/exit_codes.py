"""How a comparison ends for whoever called it: the exit code of its judgements."""

from collections.abc import Iterable

from harness.commands.words import EXIT_CANNOT_TELL, EXIT_COULD_NOT_MEASURE, EXIT_FINE, EXIT_REGRESSION
from harness.compare.judgement import Judgement


def exit_code(judgements: Iterable[Judgement]) -> int:
    """0 fine, 1 regression, 2 cannot tell, 3 could not measure; the first of these that applies: 1, 3, 2, 0.

    A regression that was found comes before a cell that could not be measured: it stays one whatever the other would
    have shown, and a job that is started again on a 3 would hide it. What could not be measured comes before what could
    not be told: more repeats do not mend it. Nothing judged at all is a 3: a gate that held nothing is not open.

    A subject that failed by its own doing (cause `system`) where its baseline did not is a regression: a version that
    crashes must not pass for a machine that did. Any other failure, a baseline's too, is a measurement that did not
    come about; so is what was not run, or is not comparable.
    """
    gating = [judgement for judgement in judgements if judgement.gating]
    codes = {_code(judgement) for judgement in gating} or {EXIT_COULD_NOT_MEASURE}
    return next(
        code for code in (EXIT_REGRESSION, EXIT_COULD_NOT_MEASURE, EXIT_CANNOT_TELL, EXIT_FINE) if code in codes
    )


def _code(judgement: Judgement) -> int:
    if judgement.state == "worse" or (judgement.state == "failed" and judgement.cause == "system"):
        return EXIT_REGRESSION
    if judgement.state in {"failed", "not run", "not comparable"}:
        return EXIT_COULD_NOT_MEASURE
    return EXIT_CANNOT_TELL if judgement.state == "cannot tell" else EXIT_FINE
