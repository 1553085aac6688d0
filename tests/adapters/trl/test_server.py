import os
import socket
import sys
from pathlib import Path

import psutil
import pytest

import adapters.trl.gpu.server as server
from adapters.trl.gpu.server import serving, split_devices
from harness.errors import SystemFailure

SERVE = """
import http.server, os, pathlib, sys
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
pathlib.Path(sys.argv[2]).write_text(os.environ["CUDA_VISIBLE_DEVICES"] + " " + str(os.getpid()))
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "POLL_SECONDS", 0.05)


def test_it_serves_while_the_block_runs_and_ends_with_it(tmp_path: Path, port: int) -> None:
    said = tmp_path / "said"
    command = [sys.executable, "-c", SERVE, str(port), str(said)]
    with serving(command, "0,1", f"http://127.0.0.1:{port}/health"):
        devices, pid = said.read_text().split()
        assert devices == "0,1"
        assert psutil.pid_exists(int(pid))
    assert not psutil.pid_exists(int(pid))
    assert "CUDA_VISIBLE_DEVICES" not in os.environ or os.environ["CUDA_VISIBLE_DEVICES"] != "0,1"


def test_a_server_that_dies_is_a_failure_of_the_system(port: int) -> None:
    with (
        pytest.raises(SystemFailure, match="ended with 3"),
        serving([sys.executable, "-c", "raise SystemExit(3)"], "0", f"http://127.0.0.1:{port}/health"),
    ):
        pass


def test_a_server_that_never_answers_is_ended(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "START_SECONDS", 0.2)
    with (
        pytest.raises(SystemFailure, match="not healthy"),
        serving([sys.executable, "-c", "import time; time.sleep(60)"], "0", f"http://127.0.0.1:{port}/health"),
    ):
        pass


@pytest.mark.parametrize(
    ("visible", "count", "expected"), [(None, 2, ("0", "1")), ("4,7,5", 8, ("4,7", "5")), (None, 3, ("0,1", "2"))]
)
def test_the_last_device_trains(visible: str | None, count: int, expected: tuple[str, str]) -> None:
    assert split_devices(visible, count) == expected
