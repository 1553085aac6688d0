"""TRL's vLLM server as a child of the training process, on devices of its own."""

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from adapters.trl.settings import SERVER_PORT
from harness.errors import SystemFailure

START_SECONDS = 900.0
POLL_SECONDS = 1.0
GRACE_SECONDS = 30.0
HEALTH = f"http://127.0.0.1:{SERVER_PORT}/health"


def server_command(model: str, options: Mapping[str, Any]) -> list[str]:
    """vLLM's own server as TRL wants it: NCCL weight transfer, processed log-probs (trl/scripts/vllm_serve.py)."""
    from trl.scripts.vllm_serve import ScriptArguments, build_command

    memory = options["gpu_memory_utilization"]
    arguments = ScriptArguments(model=model, host="127.0.0.1", port=SERVER_PORT, gpu_memory_utilization=memory)
    return list(build_command(arguments))


def split_devices(visible: str | None, count: int) -> tuple[str, str]:
    """(server's, trainer's) CUDA_VISIBLE_DEVICES: the last device trains, the others serve, in their given order."""
    devices = visible.split(",") if visible else [str(index) for index in range(count)]
    return ",".join(devices[:-1]), devices[-1]


@contextmanager
def serving(command: Sequence[str], devices: str, health: str = HEALTH) -> Iterator[None]:
    """Run the server while the block runs, in our process group, so that whoever ends us ends it; its output goes where
    ours goes.

    Raises:
        SystemFailure: it ended, or gave no sign of health within `START_SECONDS`.
    """
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": devices, "VLLM_SERVER_DEV_MODE": "1"}
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
    try:
        _wait_for_health(process, health)
        yield
    finally:
        process.terminate()
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_health(process: subprocess.Popen[bytes], health: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemFailure(f"TRL's vLLM server ended with {process.returncode} before it served")
        try:
            with urllib.request.urlopen(health, timeout=POLL_SECONDS):  # noqa: S310  (our own address)
                return
        except OSError:
            time.sleep(POLL_SECONDS)
    raise SystemFailure(f"TRL's vLLM server was not healthy within {START_SECONDS:.0f} s")
