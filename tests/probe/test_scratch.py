"""A cell's folder for sockets."""

from pathlib import Path

from harness.probe.scratch import scratch_folder


def test_each_cell_has_its_own_with_a_short_name() -> None:
    folders = {scratch_folder(Path("/runs", cell)) for cell in ("a", "b", "c" * 200)}
    assert len(folders) == 3
    assert all(len(folder.name) == 12 for folder in folders)
    assert scratch_folder("/runs/a") in folders
