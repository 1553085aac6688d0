"""The reference loop with its fast engine against TRL: the same fixed-length work in the same precision."""

from benchmarks.pairs import choice, ratios, show

SIZES = {
    "tiny": (["task.steps=30", "repeats=5"], "at least 2"),
    "smollm2": (
        [
            "task.steps=4",
            "task.warmup_steps=1",
            "task.prompts_per_batch=4",
            "task.group_size=4",
            "task.max_tokens=64",
            "repeats=3",
        ],
        "at least 1.5",
    ),
}


def main() -> None:
    """Print, for each size of model, how many times as long TRL takes for the same steps."""
    for model, (words, wanted) in SIZES.items():
        common = ["track=fixed_length", f"model={model}", *words]
        trl, reference = (
            choice("trl", ["adapter=trl", *common]),
            choice("reference_vllm", ["adapter=reference_vllm", *common]),
        )
        show(f"TRL / reference (vLLM engine), {model}, training seconds", ratios(trl, reference), wanted)
