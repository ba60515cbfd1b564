"""Seconds in words: the unit and the digits, alone and in a column."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.examples import examples
from tpucc.sim.durations import duration, durations

SIZES = {"ns": Decimal("1e-9"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1)}


@each(
    [
        (446e-9, "446 ns"),
        (12.345e-6, "12.3 µs"),
        (92.196e-3, "92.2 ms"),
        (1.2123, "1.21 s"),
        (10e-6, "10 µs"),
        (999.4e-9, "999 ns"),
        (999.6e-9, "1 µs"),
        (0.9996, "1 s"),
        (1e-3, "1 ms"),
        (12_345.0, "12,300 s"),
        (0.25e-9, "0.25 ns"),
        (0.0, "0 ns"),
    ]
)
def test_durations_by_hand(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@examples(100, 25_000)
@given(st.floats(1e-9, 999, allow_nan=False))
def test_a_duration_reads_back(seconds: float) -> None:
    """To three digits, which decimal arithmetic rounds; the number before the unit is at least 1 and less than 1,000."""
    number, unit = duration(seconds).split(" ")
    exact = Decimal(seconds)
    assert Decimal(number) * SIZES[unit] == exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), ROUND_HALF_EVEN)
    assert 1 <= Decimal(number) < 1000


@each(
    [
        ([1171.4e-6, 748.3e-6, 507.7e-6], ["1.171 ms", "0.748 ms", "0.508 ms"]),
        ([11.933e-6, 11.861e-6], ["11.93 µs", "11.86 µs"]),
        ([388.9e-6, 9.6e-6], ["388.9 µs", "9.6 µs"]),
        ([9.6e-6], ["9.600 µs"]),
        ([1e-9, 999.97e-6], ["0.000 ms", "1.000 ms"]),
        ([9999.7, 3.0], ["10,000 s", "3 s"]),
        ([0.0], ["0.000 ns"]),
        ([], []),
    ]
)
def test_a_column_has_one_unit_and_as_many_decimals(seconds: list[float], texts: list[str]) -> None:
    assert durations(seconds) == texts
