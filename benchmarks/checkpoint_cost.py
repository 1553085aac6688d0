"""What keeping the run costs: the reference loop with a checkpoint after every batch over none, in its own time and in
the background; median of interleaved pairs."""

from benchmarks.pairs import choice, ratios, show

SIZES = {
    "tiny": ["task.steps=60"],
    "smollm2": [
        "task.steps=6",
        "task.warmup_steps=1",
        "task.prompts_per_batch=4",
        "task.group_size=4",
        "task.max_tokens=16",
        "adapter.checkpoint.every=3",
    ],
}
PLACES = {"background": "at most 1.05", "in the loop's own time": "no limit"}


def main() -> None:
    """Print the ratio for each size of model and place of writing."""
    for model, words in SIZES.items():
        for place, wanted in PLACES.items():
            common = ["adapter=reference", "layout=colocated_sync", f"model={model}", "repeats=6"]
            keeps = ["adapter.checkpoint.every=1", *words, f"adapter.checkpoint.background={place == 'background'}"]
            kept = choice("kept", [*common, *keeps])
            bare = choice("bare", [*common, *words, "adapter.checkpoint.every=0"])
            show(f"checkpoints {place} / none, {model}, seconds of training", ratios(kept, bare), wanted)
