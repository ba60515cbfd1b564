"""How numbers are written: counts, sizes and rates, in tables, sentences and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_FACTORS: Mapping[str, float] = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}


def number(value: float) -> str:
    """Four significant digits at most: `0.00392`, `1,349`, `10 M`, `2.5e-07`."""
    unit, factor = _unit(value)
    if unit:
        return f"{value / factor:.4g} {unit}"
    return f"{int(value):,}" if value == int(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def numbers(values: Sequence[float]) -> list[str]:
    """The numbers of an axis, all in the unit of the last and largest: `0, 5 M, 10 M`."""
    unit, factor = _unit(values[-1]) if values else ("", 1.0)
    return [f"{value / factor:.4g} {unit}" if unit and value else number(value) for value in values]


def rate_text(rate: float) -> str:
    """Operations a second: `12.3 TOPS`, `8 MOPS`."""
    return _with_prefix(rate, "TGMk", "OPS")


def bandwidth_text(rate: float) -> str:
    """Bytes a second: `34 GB/s`, `2 MB/s`."""
    return _with_prefix(rate, "GMk", "B/s")


def layer_rate(tops: float, macs: int) -> str:
    """The TOPS of a layer, in a cell; a dash for one that multiplies nothing."""
    return f"{tops:.3g}" if macs else "–"


def size(count: float) -> str:
    """`37.5 KiB`, `1.2 MiB`."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:,.4g} {unit}"
    return f"{count:,.0f} bytes"


def _with_prefix(rate: float, prefixes: str, unit: str) -> str:
    """Three significant digits, with the first of the `prefixes` that leaves a number of 1 or more."""
    prefix = next((letter for letter in prefixes if rate >= _FACTORS[letter]), "")
    return f"{number(float(f'{rate / _FACTORS.get(prefix, 1.0):.3g}'))} {prefix}{unit}"


def _unit(value: float) -> tuple[str, float]:
    """The letter of millions and more, and how many one of them is; empty for what is written in full."""
    return next(((unit, _FACTORS[unit]) for unit in "TGM" if abs(value) >= max(1e7, _FACTORS[unit])), ("", 1.0))
