"""Runs jobs through a launcher plug-in of Hydra, each in a launch of its own, so that one that dies costs no other."""

import importlib.util
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

import conf
from harness.cluster.job import Job, run_file
from harness.errors import PrerequisiteError, UserError

CONF = Path(conf.__path__[0])
OWN = ("name", "plugin", "needs", "one_machine", "split")
"""Settings of `conf/launcher` that are rlaxes' own; every other one has the name that Hydra's plug-in gives it."""
Asked = Mapping[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """How a job ended: with its `result`, or in `died` one line on what became of it; `kind` is the class of
    `harness.errors` where it said that itself."""

    name: str
    result: Any
    died: str | None
    kind: str | None = None


def launch(jobs: Sequence[Job], folder: Path, asked: Asked, at_once: int, say: Say) -> list[Ended]:
    """Run jobs and wait for all; the results in the order of the jobs.

    Args:
        folder: where they can all read and write; files, logs and what the plug-in keeps go there.
        asked: the chosen option of `conf/launcher`.
        at_once: how many may run side by side, as far as the plug-in's machine has room.

    Raises:
        UserError: a setting is not the plug-in's, or has a value that it cannot take.
        PrerequisiteError: the plug-in, or the program that it calls, is not here.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _quiet()
    # Hydra's state is the process's: everything is put together in this thread, the others only wait.
    ready = [(job, job.write(folder)) for job in jobs]
    launchers = [launcher_of(asked, folder) for _ in jobs]
    ended: dict[int, Ended] = {}

    def run(number: int) -> None:
        job, file = ready[number]
        say(f"job {job.name}: launched")
        ended[number] = _run(launchers[number], job, file, number, folder)
        say(f"job {job.name}: {ended[number].died or 'ended'}")

    _in_threads(run, len(jobs), at_once)
    return [ended[number] for number in range(len(jobs))]


def launcher_of(asked: Asked, folder: Path) -> Launcher:
    """The plug-in's launcher with its settings, from Hydra's own plug-in registry.

    Raises:
        UserError, PrerequisiteError: as `launch`.
    """
    _check_needs(asked)
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), job_name="rlaxes", version_base=None):
            words = [f"hydra/launcher={asked['plugin']}", f"hydra.sweep.dir={quoted(folder)}"]
            config = compose("job", overrides=words, return_hydra_config=True)
            _set(config, asked)
            context = HydraContext(config_loader=GlobalHydra.instance().config_loader(), callbacks=Callbacks())
            return Plugins.instance().instantiate_launcher(context, run_file, config)
    except HydraException as error:
        raise UserError(f"launcher={asked['name']}: {' '.join(str(error).split())}") from error


def _set(config: DictConfig, asked: Asked) -> None:
    settings = {key: value for key, value in asked.items() if key not in OWN}
    for key, value in settings.items():
        if key not in config.hydra.launcher:
            raise UserError(f"launcher.{key}={value}: Hydra's launcher {asked['plugin']} has no such setting")
        try:
            with open_dict(config.hydra.launcher):
                OmegaConf.update(config.hydra.launcher, key, value, merge=True)
        except OmegaConfBaseException as error:
            raise UserError(f"launcher.{key}={value}: {str(error).splitlines()[0]}") from error


def _check_needs(asked: Asked) -> None:
    for kind, name in (asked.get("needs") or {}).items():
        if kind == "package" and _missing(name):
            raise PrerequisiteError(
                f"launcher={asked['name']} needs the package {name}, which rlaxes does not bring along: "
                f"`.venv/bin/uv pip install {name.replace('_', '-')}`"
            )
        if kind == "command" and shutil.which(name) is None:
            raise PrerequisiteError(
                f"launcher={asked['name']} needs the command {name}, which is not here: start where it is"
            )


def _missing(package: str) -> bool:
    try:
        return importlib.util.find_spec(f"hydra_plugins.{package}") is None
    except ModuleNotFoundError:
        return True


def quoted(path: Path) -> str:
    """A path as a value of Hydra's grammar of overrides."""
    return "'" + str(path).replace("'", "\\'") + "'"


def _quiet() -> None:
    """The plug-in logs each submission; what the user needs is said in our words."""
    logging.getLogger("hydra_plugins").setLevel(logging.WARNING)


def _run(launcher: Launcher, job: Job, file: Path, number: int, folder: Path) -> Ended:
    try:
        (returned,) = launcher.launch([[f"file={quoted(file)}"]], initial_job_idx=number)
        said = returned.return_value
    except Exception as error:  # noqa: BLE001 - whatever a job or its scheduler did is that job's end and nobody else's
        first = " ".join(str(error).split("\n-", maxsplit=1)[0].split())
        return Ended(job.name, None, f"{type(error).__name__}: {first}; its log is in {folder}")
    return Ended(job.name, said["result"], said["error"], said["kind"])


def _in_threads(run: Callable[[int], None], count: int, at_once: int) -> None:
    """Call `run` with each number, so many side by side. The threads die with the process, so that Ctrl-C ends it at
    once; jobs of a cluster go on."""
    numbers: Iterator[int] = iter(range(count))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            run(number)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(at_once, count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
