import importlib.util

import pytest

from adapters.openrlhf.gpu.prerequisites import check_prerequisites
from harness.errors import PrerequisiteError


def test_a_gpu_run_without_flash_attention_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PrerequisiteError, match=r"--no-build-isolation flash-attn==2\.8\.3") as raised:
        check_prerequisites()
    assert "\n" not in str(raised.value)


def test_with_it_there_is_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    check_prerequisites()
