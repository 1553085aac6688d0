"""The event files as TensorBoard's own accumulator reads them."""

import struct
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import TENSORS, EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from harness.export.content import Content, Run
from harness.export.tensorboard import write_tensorboard
from tests.export.conftest import UNFINISHED


@pytest.fixture(scope="module")
def written(content: Content, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tensorboard")
    write_tensorboard(content, folder)
    return folder


def _read(folder: Path, run: Run) -> Any:
    accumulator = EventAccumulator(str(folder / run.name), size_guidance={TENSORS: 0, "scalars": 0})
    accumulator.Reload()
    return accumulator


def _narrow(value: float) -> float:
    """As 32 bits hold it."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def test_every_figure_is_there_as_it_is_in_the_report(content: Content, written: Path) -> None:
    for run in content.runs:
        read = _read(written, run)
        curves = {name for series in run.series for name in series.columns}
        found = {tag: read.Scalars(tag)[0].value for tag in read.Tags()["scalars"] if tag not in curves}
        assert found == {name: _narrow(value) for f in run.figures for name, value in f.numbers.items()}
        assert {f.name for f in run.figures if f.value is not None} <= set(found)


def test_curves_stand_at_their_steps(content: Content, written: Path) -> None:
    cell = content.runs[1]
    read = _read(written, cell)
    for series in cell.series:
        for name, column in series.columns.items():
            points = [(x, _narrow(y)) for x, y in zip(series.x, column, strict=True) if y is not None]
            if points:
                assert [(event.step, event.value) for event in read.Scalars(name)] == points


def test_settings_are_hyperparameters(content: Content, written: Path) -> None:
    cell = content.runs[1]
    told = _read(written, cell).PluginTagToContent("hparams")
    info = HParamsPluginData.FromString(told["_hparams_/session_start_info"]).session_start_info
    assert info.hparams["settings.task.steps"].number_value == 6
    assert set(info.hparams) == set(cell.parameters)


def test_what_has_no_value_is_a_text_with_its_reason(content: Content, written: Path) -> None:
    failed = _read(written, content.runs[-1]).Tensors("without_a_value")[0].tensor_proto.string_val[0].decode()
    assert UNFINISHED.split(" & ")[0] in failed
    assert "<nothing>" not in failed
    for figure in content.runs[-1].figures:
        assert figure.name in failed


def test_no_name_of_this_machine_is_in_a_file_name(written: Path) -> None:
    assert {path.name for path in written.rglob("*tfevents*")} == {"events.out.tfevents.0.rlaxes"}
