"""What keeping the run costs: seconds of training with checkpoints over those without, written in the loop's own time
and in the background; median of interleaved pairs. After the last checkpoint come steps enough to finish writing it."""

from benchmarks.pairs import choice, ratios, show

SMALL_BATCH = ["task.warmup_steps=1", "task.prompts_per_batch=4", "task.group_size=4", "task.max_tokens=16"]
SIZES = {"tiny": (1, ["task.steps=60"]), "smollm2": (4, ["task.steps=10", *SMALL_BATCH])}
"""Batches between two checkpoints, and the task."""
WANTED = {"true": "at most 1.05", "false": "no limit: the loop waits for the disk"}


def main() -> None:
    """Print the ratio for each size of model and place of writing."""
    for model, (every, words) in SIZES.items():
        common = ["adapter=reference", "layout=colocated_sync", f"model={model}", "repeats=6", *words]
        bare = choice("bare", [*common, "adapter.checkpoint.every=0"])
        for background, wanted in WANTED.items():
            keeps = [f"adapter.checkpoint.every={every}", f"adapter.checkpoint.background={background}"]
            name = f"checkpoint every {every} / none, {model}, background={background}"
            show(name, ratios(choice("kept", [*common, *keeps]), bare), wanted)
