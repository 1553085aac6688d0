"""Options of the test suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--adapter", default="fake,reference,trl", help="adapters for tests/conformance, by comma")
