"""Files from folders, archives and standard input: each once, read in place, with one line where one cannot be read."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.ingest.sources import find_sources

TEXT = b"step:1 - actor/lr:0.1\n"


def read(*paths: Path | str) -> dict[str, bytes]:
    with find_sources([str(path) for path in paths]) as sources:
        out = {}
        for source in sources:
            for _ in range(2):
                with source.open() as stream:
                    out[Path(source.name).name] = stream.read()
        return out


def test_a_folder_is_searched_and_what_is_no_log_is_left(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "a" / ".git" / "log").write_bytes(TEXT)
    (tmp_path / "a" / "x.log").write_bytes(TEXT)
    (tmp_path / "a" / "model.safetensors").write_bytes(TEXT)
    (tmp_path / "a" / "train.parquet").write_bytes(TEXT)
    (tmp_path / "a" / "completions_00010.parquet").write_bytes(TEXT)
    (tmp_path / "a" / "round").symlink_to(tmp_path / "a")
    assert read(tmp_path) == {"x.log": TEXT, "completions_00010.parquet": TEXT}
    assert read(tmp_path / "a" / "model.safetensors") == {"model.safetensors": TEXT}


def test_a_file_that_two_paths_lead_to_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(TEXT)
    with find_sources([str(tmp_path), str(tmp_path / "x.log")]) as sources:
        assert len(sources) == 1


def test_archives_are_read_in_place(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../outside.log", TEXT)
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("/etc/in.log")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with gzip.open(tmp_path / "c.log.gz", "wb") as file:
        file.write(TEXT)
    before = set(tmp_path.rglob("*"))
    assert read(tmp_path) == {"outside.log": TEXT, "in.log": TEXT, "c.log.gz": TEXT}
    assert set(tmp_path.rglob("*")) == before


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert read("-") == {"standard input": TEXT}


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read(tmp_path / "nothing")
    (tmp_path / "broken.zip").write_bytes(b"x" * 40 + b"PK\x05\x06" + b"\xff" * 16 + bytes(2))
    with pytest.raises(UserError, match=r"broken\.zip"):
        read(tmp_path / "broken.zip")
