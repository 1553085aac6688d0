import pytest

from harness.report import format as fmt


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0"),
        (2.0, "2"),
        (99.99999, "100"),
        (118.4, "118"),
        (1234.5, "1 234"),
        (0.03456, "0.0346"),
        (-0.5, "−0.500"),
        (1e-9, "1.00e−9"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
    ],
)
def test_number(value: float | None, shown: str) -> None:
    assert fmt.number(value).replace("\u202f", " ") == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (131_072, "bytes", "128 KiB"),
        (2.5e9, "bytes", "2.33 GiB"),
        (0.0123, "s", "12.3 ms"),
        (2.1e-6, "s", "2.10 µs"),
        (75.0, "s", "75 s"),
        (0.344, "share", "34.4 %"),
        (118.2, "tokens/s", "118 tokens/s"),
        (1.11, "ratio", "1.11"),
    ],
)
def test_quantity(value: float, unit: str, shown: str) -> None:
    assert fmt.quantity(value, unit) == shown


def test_a_value_and_its_interval_share_a_scale() -> None:
    divisor, name = fmt.scale("s", 1.2)
    assert (divisor, name) == (1.0, "s")
    assert fmt.number(0.98 / divisor) == "0.980"


def test_duration() -> None:
    assert [fmt.duration(seconds) for seconds in (9, 492, 3720)] == ["9 s", "8 min 12 s", "1 h 2 min"]
