"""A full publication of SmolLM2 to one embedded replica, over a plain copy of as many bytes from memory to memory."""

import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from benchmarks.pairs import choice, show
from harness.execute.adapter import find_adapter, import_folder
from harness.execute.cell import Cell
from harness.execute.environments import cache_folder, ensure_environment
from harness.execute.launch import child_environment
from harness.task.build import build_bundle

SCRIPT = Path(__file__).parent / "in_env" / "publish.py"
WORDS = [
    "adapter=reference",
    "layout=disaggregated_sync",
    "model=smollm2",
    "task.prompts_per_batch=4",
    "task.group_size=4",
    "task.max_tokens=16",
    "adapter.verify_every=1000",
]


def main() -> None:
    """Print the ratio, and what each phase of a publication took."""
    config = choice("publication", WORDS).config
    adapter = find_adapter("reference")
    lock = adapter.lock("cpu")
    assert lock is not None
    python = ensure_environment(adapter.name, lock, adapter.spec["python"], print).python
    bundle = build_bundle(config["task"], config["model"], cache_folder(), python, print)
    with tempfile.TemporaryDirectory() as folder:
        cell = Cell(
            run_id="benchmark",
            cell_id="publication",
            adapter="reference",
            package=adapter.package,
            layout=config["layout"],
            track=config["track"]["name"],
            repeat=0,
            seed=config["seed"],
            observer=False,
            bundle=str(bundle.path),
            directory=folder,
            attempt=0,
            fault=config["fault"],
            profile=config["profile"],
            model=config["model"],
            adapter_options=config["adapter"],
            task=config["task"],
        )
        file, imports = cell.write(), import_folder(adapter, Path(folder) / "imports")
        env = child_environment(imports, file, {"HF_HUB_OFFLINE": "1"}, config["profile"]["threads"])
        done = subprocess.run([str(python), str(SCRIPT), str(file)], env=env, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.decode().splitlines()[-1])
    values = [pair["publication"] / pair["copy"] for pair in found["pairs"]]
    show(f"full publication / memory copy, {found['bytes'] / 1e6:.0f} MB of SmolLM2, seconds", values, "at most 3")
    for phase in found["pairs"][0]["phases"]:
        seconds = statistics.median(pair["phases"][phase] for pair in found["pairs"])
        print(f"  {phase.removesuffix('_s')}: {seconds:.4f} s")
    print(f"  the copy: {statistics.median(pair['copy'] for pair in found['pairs']):.4f} s")
