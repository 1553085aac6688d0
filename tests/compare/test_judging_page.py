"""docs/judging.md says what the code does."""

import contextlib
import io
import math
import re
from pathlib import Path

from harness.commands.words import EXIT_CANNOT_TELL, EXIT_COULD_NOT_MEASURE, EXIT_FINE, EXIT_REGRESSION
from harness.compare.effect import POWER, Effect, detectable, power
from harness.compare.gates import FOREIGN_LIMIT, GATES, LEAST_UNPAIRED, LEVEL, STATED_MARGIN, STEP
from harness.compare.judgement import STATES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
PAIRS = (3, 5, 8, 10, 20)
WEIGHTS = {gate.measure: gate.weight for gate in GATES}
NO_DEVICE = sum(WEIGHTS.values()) - WEIGHTS["device_memory_peak_bytes"]
STEP_LEVEL = LEVEL * WEIGHTS[STEP] / NO_DEVICE


def paired(noise: float, pairs: int) -> Effect:
    return Effect(0.0, noise * math.sqrt(2 / pairs), pairs - 1, pairs, paired=True)


def test_the_table_of_what_can_be_found() -> None:
    rows = re.findall(r"^\| ([\d.]+) % \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for noise, printed in rows:
        found = [detectable(paired(float(noise) / 100, n), STEP_LEVEL, STATED_MARGIN) for n in PAIRS]
        assert printed == " | ".join(f"{100 * one:.1f} %" for one in found)


def test_the_sentences_with_numbers() -> None:
    said = " ".join(PAGE.split())
    assert detectable(paired(0.017, 5), STEP_LEVEL, STATED_MARGIN) < GATES[0].sought
    assert detectable(paired(0.018, 5), STEP_LEVEL, STATED_MARGIN) > GATES[0].sought
    assert "five pairs, the default, find 5 % at a noise of up to 1.7 %" in said
    shares = [power(math.log(1.05), paired(0.02, n), STEP_LEVEL, math.log1p(STATED_MARGIN)) for n in (5, 8)]
    assert "in {:.0f} % of comparisons of 5 pairs, and in {:.0f} %".format(*(100 * one for one in shares)) in said
    assert f"past {100 * STATED_MARGIN:g} %" in said
    assert f"more than {FOREIGN_LIMIT:g} cores" in said
    assert f"takes {LEAST_UNPAIRED} repeats on each side" in said
    assert f"a power of {100 * POWER:g} %" in said


def test_every_gate_and_every_state_has_a_line() -> None:
    for gate in GATES:
        share = {0.5: "1/2", 0.25: "1/4", 0.125: "1/8"}[gate.weight]
        assert re.search(rf"^\| `{gate.measure}`.*\| {100 * gate.sought:g} % \| {share}", PAGE, re.MULTILINE)
    states = re.findall(r"^\| (?!noise)([a-z ]+) \|.*\| (\d)[^|]*\|$", PAGE, re.MULTILINE)
    assert [state for state, _ in states] == list(STATES)
    codes = {int(code) for _, code in states}
    assert codes == {EXIT_FINE, EXIT_REGRESSION, EXIT_CANNOT_TELL, EXIT_COULD_NOT_MEASURE}


def test_the_example_prints_what_it_says() -> None:
    code, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL).groups()  # type: ignore[union-attr]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})
    assert output.getvalue() == printed
