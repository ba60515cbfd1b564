"""How long something takes, in words: the one place where seconds become text. `words.js` of the report does the same in the browser."""

from __future__ import annotations

from collections.abc import Sequence

UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
"""Each unit, and how many of them a second has; the largest first."""
DIGITS, COLUMN_DIGITS = 3, 4
"""Significant digits of a duration alone, and of the longest of those that are compared."""


def duration(seconds: float) -> str:
    """`446 ns`, `12.3 µs`, `92.2 ms`, `1.21 s`: at most three significant digits, in the largest unit that gives at least 1."""
    value, unit, _ = _rounded(seconds, DIGITS)
    return f"{value:,.12g} {unit}"


def durations(seconds: Sequence[float]) -> list[str]:
    """A column of a table: one unit and one number of decimals, with which the longest has four significant digits."""
    longest, unit, factor = _rounded(max(seconds, default=0.0), COLUMN_DIGITS)
    decimals = max(0, COLUMN_DIGITS - len(str(int(longest))))
    return [f"{value * factor:,.{decimals}f} {unit}" for value in seconds]


def seconds_unit(seconds: float) -> tuple[str, float]:
    """The largest unit of which `seconds` are one or more, and how many of them a second has; nanoseconds for less."""
    return next((unit for unit in UNITS if seconds * unit[1] >= 1), UNITS[-1])


def _rounded(seconds: float, digits: int) -> tuple[float, str, float]:
    """The number, its unit, and how many of those a second has. Rounded before the unit is chosen: 999.7 ns are 1 µs, not 1,000 ns."""
    rounded = float(f"{seconds:.{digits}g}")
    unit, factor = seconds_unit(rounded)
    return rounded * factor, unit, factor
