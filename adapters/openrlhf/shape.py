"""What of a cell OpenRLHF can hold: who gets which devices, how long a queue, and what it cannot do."""

from dataclasses import dataclass

from adapters.openrlhf.settings import LAYOUTS, Cell, batch_size, updates_per_batch

LOSSES = {"token_mean": "token-mean", "sequence_mean": "seq-mean-token-mean"}
ESTIMATORS = {"group": "group_norm", "none": "dr_grpo"}
PRECISIONS = ("float32", "bfloat16")
ZERO_STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Shape:
    """How many devices train, and how many engines of how many devices generate. On a CPU a device is a process.

    Attributes:
        trainer_parallel, engine_parallel: devices that hold one copy of the model between them.
    """

    trainers: int
    trainer_parallel: int
    engines: int
    engine_parallel: int

    @property
    def data_parallel(self) -> int:
        """Trainer processes that see different samples."""
        return self.trainers // self.trainer_parallel


def shape_of(cell: Cell) -> Shape:
    """Who gets which devices: all share all where colocated; else the engines have half or what they are given."""
    options = cell["adapter_options"]
    engine, trainer = options["engine_parallel"], options["trainer_parallel"]
    if cell["layout"]["placement"] == "colocated":
        devices = cell["profile"]["devices"]
        return Shape(devices, trainer, devices // engine, engine)
    if not on_gpu(cell):
        return Shape(options["trainer_ranks"], trainer, options["engines"] or 1, engine)
    devices = cell["profile"]["devices"]
    engines = devices // 2 // engine if options["engines"] is None else options["engines"]
    return Shape(devices - engines * engine, trainer, engines, engine)


def on_gpu(cell: Cell) -> bool:
    """Whether the profile's devices are GPUs."""
    return bool(cell["profile"].get("device") == "cuda")


def queue_size(cell: Cell) -> int:
    """Batches that may be under way or wait: OpenRLHF's own bound on lag, which it counts in batches."""
    return int(cell["layout"]["lag_bound"]) // updates_per_batch(cell["task"])


def misfit(cell: Cell) -> str | None:
    """Why OpenRLHF cannot run this cell, in one line; None where it can."""
    return _unknown(cell) or _wrong_options(cell) or _wrong_devices(cell) or _wrong_batch(cell)


def _unknown(cell: Cell) -> str | None:
    task = cell["task"]
    asked = (
        ("layout", cell["layout"]["name"], LAYOUTS),
        ("loss", task["loss"], tuple(LOSSES)),
        ("advantage_std", task["advantage_std"], tuple(ESTIMATORS)),
        ("precision", task["precision"], PRECISIONS),
        ("zero_stage", cell["adapter_options"]["zero_stage"], ZERO_STAGES),
    )
    for name, value, known in asked:
        if value not in known:
            return f"OpenRLHF has no {name} {value}; it has {', '.join(map(str, known))}"
    return "OpenRLHF refuses groups of one completion" if task["group_size"] < 2 else None


def _wrong_options(cell: Cell) -> str | None:
    options, layout = cell["adapter_options"], cell["layout"]
    if layout["synchrony"] != "asynchronous":
        return "adapter.partial_rollout needs an asynchronous layout" if options["partial_rollout"] else None
    if queue_size(cell) < 1:
        least = updates_per_batch(cell["task"])
        return f"OpenRLHF's queue holds at least one batch: layout.lag_bound={layout['lag_bound']} is below {least}"
    return None


def _wrong_devices(cell: Cell) -> str | None:
    colocated = cell["layout"]["placement"] == "colocated"
    profile, options, shape = cell["profile"], cell["adapter_options"], shape_of(cell)
    if colocated and not on_gpu(cell):
        return "needs a GPU: OpenRLHF hands weights to an engine on the same device by CUDA IPC"
    if min(shape.trainers, shape.engines) < 1:
        return (
            f"profile {profile['name']} has {profile['devices']} devices: {shape.engines} engines of "
            f"{shape.engine_parallel} generate there and {max(shape.trainers, 0)} trainers are left; each needs one"
        )
    if colocated and profile["devices"] % shape.engine_parallel:
        return f"adapter.engine_parallel={shape.engine_parallel} does not divide the {profile['devices']} devices"
    if shape.trainers % shape.trainer_parallel:
        return f"adapter.trainer_parallel={options['trainer_parallel']} does not divide {shape.trainers} trainers"
    return None


def _wrong_batch(cell: Cell) -> str | None:
    task = cell["task"]
    if task["steps"] % updates_per_batch(task):
        return (
            f"OpenRLHF trains on a batch to its end: task.steps={task['steps']} is no multiple of the "
            f"{updates_per_batch(task)} steps of one (task.minibatches x task.inner_epochs)"
        )
    samples, ranks = batch_size(task), shape_of(cell).data_parallel
    parts = task["minibatches"] * task["micro_batches"] * ranks
    if samples % parts:
        return (
            f"task.minibatches x task.micro_batches x {ranks} trainers = {parts} does not divide {samples} completions"
        )
    return None
