"""TensorBoard's event files, one folder a run of the tool; written by TensorBoard's own library.

Curves are `simple_value` scalars, as PyTorch's writer makes them and scripts read them: 32 bits, about seven digits.
The final figures are scalars at step 0, settings go to the HParams page, what has no value and why to the Text page.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from harness.export.content import Content, Figure, Run
from harness.report.markup import code, escape, grid

FILE = "events.out.tfevents.0.rlaxes"
"""TensorBoard knows its files by `tfevents`; its own writer would add the name of the host."""
VERSION = "brain.Event:2"


def write_tensorboard(content: Content, folder: Path) -> None:
    """A folder for each run of `content`."""
    for run in content.runs:
        target = folder / run.name
        target.mkdir(parents=True)
        began = run.started if run.started is not None else content.created
        with (target / FILE).open("wb") as file:
            writer = RecordWriter(file)
            writer.write(Event(wall_time=began, file_version=VERSION).SerializeToString())
            for step, after, summary in _summaries(run, began):
                writer.write(Event(wall_time=began + after, step=step, summary=summary).SerializeToString())


def _summaries(run: Run, began: float) -> Iterator[tuple[int, float, Summary]]:
    """Step, seconds after the start where they are known, and content of each event."""
    yield 0, 0.0, hparams_pb(run.parameters, trial_id=run.name, start_time_secs=began)
    yield 0, 0.0, text_pb("without_a_value", np.array(_without(run)))
    if run.judged:
        yield 0, 0.0, text_pb("judged", np.array(_judged(run)))
    numbers = {name: value for figure in run.figures for name, value in figure.numbers.items()}
    yield 0, run.wall_s or 0.0, _scalars(numbers)
    for series in run.series:
        for place, x in enumerate(series.x):
            yield x, 0.0, _scalars({name: column[place] for name, column in series.columns.items()})


def _scalars(values: Mapping[str, float | None]) -> Summary:
    there = {name: value for name, value in values.items() if value is not None}
    return Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in there.items()])


def _without(run: Run) -> str:
    """A table of what has no value, in the Markdown of the Text page."""
    absent: list[Figure] = [figure for figure in run.figures if figure.value is None]
    rows = [[code(figure.name), escape(figure.state), escape(figure.reason or "")] for figure in absent]
    rows += [[code(name), "no series", escape(why)] for name, why in run.missing.items()]
    ended = f"{run.status}{f' ({run.cause})' if run.cause else ''}: {run.reason}" if run.reason else run.status
    return "\n".join([escape(ended), "", *(grid(["figure", "state", "reason"], rows) if rows else [])])


def _judged(run: Run) -> str:
    return "\n".join(grid(["figure", "judged"], [[code(name), escape(said)] for name, said in run.judged.items()]))
