"""What watching costs: TRL with the probe over TRL bare, median of 10 interleaved pairs."""

from benchmarks.pairs import choice, ratios, show

SIZES = {
    "tiny": (["task.steps=60"], "at most 1.03"),
    "smollm2": (
        ["task.steps=4", "task.warmup_steps=1", "task.prompts_per_batch=4", "task.group_size=4", "task.max_tokens=16"],
        "at most 1.01",
    ),
}


def main() -> None:
    """Print the ratio for each size of model."""
    for model, (words, wanted) in SIZES.items():
        common = ["adapter=trl", f"model={model}", "repeats=10", *words]
        probed, bare = choice("probed", [*common, "observer=true"]), choice("bare", [*common, "observer=false"])
        show(f"TRL probed / bare, {model}, seconds of train()", ratios(probed, bare), wanted)
