"""Options of the test suite."""

import hypothesis
import pytest

# A deadline is an absolute timing: a shared machine would break it.
hypothesis.settings.register_profile("rlaxes", deadline=None)
hypothesis.settings.load_profile("rlaxes")


def pytest_addoption(parser: pytest.Parser) -> None:
    every = "fake,reference,trl,verl,openrlhf"
    parser.addoption("--adapter", default=every, help="adapters for tests/conformance, by comma")
