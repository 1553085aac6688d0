import pytest

from harness.probe.readback import reserved_devices


@pytest.mark.parametrize(("device", "counted"), [("cpu", 1), ("cuda", 3)])
def test_pools_of_one_host_without_accelerators_are_no_devices(device: str, counted: int) -> None:
    assert reserved_devices({"profile": {"device": device}}, 3) == counted
