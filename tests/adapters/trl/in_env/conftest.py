from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Not above: the harness's own pytest reads this file too, and has no torch.
    from tests.adapters.trl.in_env.runs import small_bundle

    return small_bundle(tmp_path_factory.mktemp("made") / "bundle")
