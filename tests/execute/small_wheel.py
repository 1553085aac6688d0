"""A package of one module, as a wheel in a folder, and locks that name it: an environment in a second, offline."""

import base64
import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

NAME, VERSION, MODULE = "rlaxes-small", "1.0", "rlaxes_small"


@dataclass(frozen=True)
class Shelf:
    """A find-links folder with the wheel, and the wheel's hash."""

    folder: Path
    sha256: str

    def lock(self, target: Path, *, sha256: str | None = None, head: str = "") -> Path:
        """Write a lock of the small package, by its own hash or by another."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{head}{NAME}=={VERSION} \\\n    --hash=sha256:{sha256 or self.sha256}\n", encoding="utf-8")
        return target


def _record(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def build_shelf(folder: Path) -> Shelf:
    """Build the wheel into `folder`."""
    folder.mkdir(parents=True)
    info = f"{MODULE}-{VERSION}.dist-info"
    files = {
        f"{MODULE}/__init__.py": b"VALUE = 1\n",
        f"{MODULE}/data.bin": b"\x00" * 32,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "\n".join([*(_record(name, content) for name, content in files.items()), f"{info}/RECORD,,"]) + "\n"
    wheel = folder / f"{MODULE}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", record)
    return Shelf(folder, hashlib.sha256(wheel.read_bytes()).hexdigest())
