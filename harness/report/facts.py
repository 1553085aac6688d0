"""The facts of a run that a reader meets first: what ran, where, when, and by which code."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harness.report import format as fmt

Facts = dict[str, Any]
Manifest = Mapping[str, Any]
REDONE = ("cell_id", "status", "cause", "reason", "started", "kept")
"""Of the row of a cell that was run again."""


def resolved(manifest: Manifest) -> list[dict[str, Any]]:
    """The resolved configurations of the run, one a label, layout and track."""
    return [config["resolved"] for _, config in sorted((manifest.get("configs") or {}).items())]


def title_of(manifest: Manifest) -> str:
    """What ran through what, in one line."""
    names = sorted(manifest.get("adapters") or {})
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    tasks = sorted({config["task"]["name"] for config in resolved(manifest)})
    return f"{', '.join(tasks) or 'a run'} through {listed or 'no adapter'}"


def task_facts(manifest: Manifest) -> Facts:
    """The task in a few lines; where configurations differ, all values stand."""
    configs = resolved(manifest)
    if not configs:
        return {}
    tasks = [config["task"] for config in configs]

    def each(*values: Any) -> str:
        return " / ".join(dict.fromkeys(fmt.setting(value) for value in values))

    facts = {
        "task": each(*(task["name"] for task in tasks)),
        "model": each(*(config["model"]["name"] for config in configs)),
        "layout": fmt.words(each(*(config["layout"]["name"] for config in configs))),
        "track": fmt.words(each(*(config["track"]["name"] for config in configs))),
        "steps": each(*(f"{t['steps']} optimizer steps, {t['warmup_steps']} of them warm-up" for t in tasks)),
        "batch": each(*(f"{t['prompts_per_batch']} prompts × {t['group_size']} completions" for t in tasks)),
        "length": each(*(f"at most {t['max_tokens']} tokens" for t in tasks)),
        "repeats": f"{each(*(config['repeats'] for config in configs))}, interleaved",
    }
    told = [said["recipe"] for _, said in sorted(manifest["configs"].items()) if "recipe" in said]
    recipes = dict.fromkeys(map(recipe_words, told))
    return facts | ({"recipe": " / ".join(recipes)} if recipes else {})  # a run from before recipes says nothing


def recipe_words(recipe: Mapping[str, Any]) -> str:
    """A recipe in a line: who tuned it, what, at what cost, where that can be read, and which of the adapter's options
    were not as they are where nothing is said."""
    by = f" by {recipe['by']}: {recipe['note']}" if recipe["by"] else ", tuned by nobody"
    budget = f"budget: {recipe['budget']}" if recipe["budget"] else ""
    options = ", ".join(f"adapter.{key}={fmt.setting(value)}" for key, value in recipe["changed"].items())
    changed = f"options of the command: {options}" if options else ""
    return "; ".join(filter(None, [recipe["name"] + by, budget, recipe["link"], changed]))


def machine_facts(manifest: Manifest) -> Facts:
    """The machine, and the limits that were measured on it; of several, each in one line."""
    machines = manifest.get("machines") or {}
    if len(machines) > 1:
        each = {f"on {name}": _one_machine(said["machine"], said["roofline"]) for name, said in machines.items()}
        return {name: "; ".join(f"{key} {value}" for key, value in facts.items()) for name, facts in each.items()}
    machine = manifest.get("machine") or {}
    return _one_machine(machine, manifest.get("roofline")) | {"profile": manifest.get("profile")} if machine else {}


def _one_machine(machine: Mapping[str, Any], roofline: Mapping[str, Any] | None) -> Facts:
    gpus = [f"{gpu['name']}, {fmt.quantity(gpu['memory_bytes'], 'bytes')}" for gpu in machine["gpus"]]
    facts = {
        "processor": machine["cpu_model"],
        "cores": str(machine["cores"]),
        "memory": fmt.quantity(machine["memory_bytes"], "bytes"),
        "GPUs": "; ".join(gpus) or "none",
        "system": f"{machine['system']} {machine['architecture']}, Python {machine['python']}",
    }
    if roofline:
        bandwidth = roofline["bandwidth_bytes_per_s"] / 1e9
        matrix = roofline["matrix_flops_per_s"] / 1e9
        facts["limits"] = f"{fmt.number(bandwidth)} GB/s, {fmt.number(matrix)} GFLOP/s ({roofline['dtype']}), measured"
    return facts


def code_facts(manifest: Manifest) -> Facts:
    """When it ran, and the version of rlaxes that ran it."""
    rlaxes = manifest.get("rlaxes") or {}
    commit = f", {rlaxes['commit'][:12]}" if rlaxes.get("commit") else ""
    dirty = rlaxes.get("dirty")
    checkout = {True: " with uncommitted changes", False: "", None: ""}[dirty]
    load = manifest.get("load") or {}
    return {
        "began": _moment(manifest["created"]),
        "took": _took(manifest),
        "run": manifest["run_id"],
        "rlaxes": f"{rlaxes.get('version', 'unknown')}{commit}{checkout}",
        "load": " → ".join(f"{load[key][0]:g}" for key in ("before", "after") if load.get(key)) or "unknown",
    }


def _moment(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _took(manifest: Manifest) -> str:
    if not manifest.get("finished"):
        return "not ended yet"
    span = datetime.fromisoformat(manifest["finished"]) - datetime.fromisoformat(manifest["created"])
    return fmt.duration(span.total_seconds())


def provenance_of(manifest: Manifest) -> Facts:
    """What a repetition needs, in the manifest's own words."""
    keys = ("rlaxes", "locks", "bundle", "roofline", "load", "start_order", "torn", "additions", "configs")
    facts = {key: manifest[key] for key in keys if manifest.get(key)}
    if redone := manifest.get("redone"):
        facts["redone"] = [{key: row[key] for key in REDONE} for row in redone]
    return facts | {"cores": (manifest.get("machine") or {}).get("cores")}
