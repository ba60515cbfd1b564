"""How the values of a step are computed where there is a choice, which changes their bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from tpucc.diagnostics import Diagnostic, UsageError, listed

CHOICES: Mapping[str, Mapping[str, str]] = {
    "activations": {
        "f32": "values that have the batch as an axis are kept in memory as they are",
        "bf16": "they are rounded to bfloat16 where one loop or product leaves them in memory for another: half of the bytes",
    },
    "statistics": {
        "two-pass": "batch normalisation takes the mean of x, then that of (x - mean)²",
        "one-pass": "it takes the means of x and x², and the variance as their difference: memory is read once",
    },
}
"""The values of each field, the default first, and what they mean."""


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """A value of `CHOICES` for each of its names. Raises `UsageError` E0529 for another one."""

    activations: str = "f32"
    statistics: str = "two-pass"

    def __post_init__(self) -> None:
        for name, values in CHOICES.items():
            if (value := getattr(self, name)) not in values:
                raise UsageError(Diagnostic("E0529", f"{name} is {listed([*values], 'or')}, found {value!r}"))

    @property
    def changed(self) -> dict[str, str]:
        """What isn't the default."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.changed.items())


DEFAULT = Numerics()
