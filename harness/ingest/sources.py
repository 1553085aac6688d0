"""Files to read: paths, folders, members of archives (read in place, never unpacked), and standard input."""

import gzip
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import IO, BinaryIO, cast

from harness.errors import UserError

SPOOL_BYTES = 64 * 1024 * 1024
"""Of standard input, what is kept in memory; the rest waits in a temporary file."""
SKIPPED = frozenset(
    {".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".npy", ".npz", ".parquet", ".arrow", ".png", ".jpg", ".so", ".py"}
)
"""Endings, in a folder or an archive, of what is no log. A file that is named itself is read whatever its ending."""
KEPT = "completions_*.parquet"
"""What TRL dumps of its completions has such an ending, and is read."""
SKIPPED_FOLDERS = frozenset({".git", "__pycache__", "node_modules", ".venv"})


@dataclass(frozen=True)
class Source:
    """A file that can be opened any number of times, to be read as a stream and closed by the caller. `name` is how a
    report names it; `size` is in bytes, of an archive's member unpacked; None where only reading tells."""

    name: str
    size: int | None
    open: Callable[[], BinaryIO]


@contextmanager
def find_sources(paths: Sequence[str]) -> Iterator[list[Source]]:
    """All files that the paths lead to, each once, in the order of the paths and of the names below them; `-` is
    standard input.

    Raises:
        UserError: a path is not there, may not be read or is a broken archive; or standard input is a terminal.
    """
    with ExitStack() as stack:
        found: dict[str, Source] = {}
        for path in paths:
            for source in _standard_input(stack) if path == "-" else _below(Path(path)):
                found.setdefault(source.name, source)
        yield list(found.values())


def _standard_input(stack: ExitStack) -> Iterator[Source]:
    if sys.stdin.isatty():
        raise UserError("-: standard input is a terminal; pipe a log into the command")
    spool = stack.enter_context(tempfile.NamedTemporaryFile(prefix="rlaxes-stdin-"))  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, spool, 1 << 20)
    spool.flush()
    yield Source("standard input", spool.tell(), partial(_open, Path(spool.name)))


def _below(path: Path) -> Iterator[Source]:
    if not path.exists():
        raise UserError(f"{path}: there is no such file or folder")
    if not path.is_dir():
        yield from _of_file(path)
        return
    for base, folders, files in os.walk(path):  # does not follow links to folders, so that none leads round in a circle
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for file in (Path(base, name) for name in sorted(files)):
            if file.is_file() and _may_be_log(file):
                yield from _within(file)


def _within(file: Path) -> list[Source]:
    """A file of a folder. One that may not be read stops no other: whoever opens it is told."""
    try:
        return list(_of_file(file))
    except UserError:
        return [Source(str(file), None, partial(_open, file))]


def _may_be_log(path: PurePath) -> bool:
    return path.suffix not in SKIPPED or path.match(KEPT)


def _of_file(path: Path) -> Iterator[Source]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        if zipfile.is_zipfile(path):
            yield from _of_zip(path)
        elif tarfile.is_tarfile(path):
            yield from _of_tar(path)
        elif magic[:2] == b"\x1f\x8b":
            yield Source(str(path), None, partial(_open_gzip, path))
        else:
            yield Source(str(path), path.stat().st_size, partial(_open, path))
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error


def _open(path: Path) -> BinaryIO:
    return path.open("rb")


def _open_gzip(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb"))


def _of_zip(path: Path) -> Iterator[Source]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and _may_be_log(PurePath(member.filename)):
                yield Source(f"{path}:{member.filename}", member.file_size, partial(_open_zip, path, member.filename))


def _open_zip(path: Path, member: str) -> BinaryIO:
    archive = zipfile.ZipFile(path)
    return cast(BinaryIO, _Owned(archive.open(member), archive.close))


def _of_tar(path: Path) -> Iterator[Source]:
    """Its regular files; links and devices in it lead nowhere."""
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and _may_be_log(PurePath(member.name)):
                yield Source(f"{path}:{member.name}", member.size, partial(_open_tar, path, member.name))


def _open_tar(path: Path, member: str) -> BinaryIO:
    archive = tarfile.open(path)  # noqa: SIM115  (closed with the member)
    file = archive.extractfile(member)
    if file is None:
        raise UserError(f"{path}:{member}: is no regular file any more")
    return cast(BinaryIO, _Owned(file, archive.close))


class _Owned:
    """A member of an archive that closes the archive with itself."""

    def __init__(self, file: IO[bytes], close: Callable[[], None]) -> None:
        self._file, self._close = file, close
        self.read = file.read

    def __enter__(self) -> "_Owned":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close both."""
        self._file.close()
        self._close()
