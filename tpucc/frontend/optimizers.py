"""The optimizers of the language: their names, their parameters with defaults, and the values that these may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an optimizer. Without a default it must be given. Its values lie from `low` up to `high`, which is never one of them;
    `low` is one when it is `included`."""

    name: str
    default: float | None
    low: float = 0.0
    high: float = float("inf")
    included: bool = False

    def allows(self, value: float) -> bool:
        return (self.low <= value if self.included else self.low < value) and value < self.high

    @property
    def range(self) -> str:
        """`above 0`, or `at least 0 and below 1`."""
        low = f"at least {self.low:g}" if self.included else f"above {self.low:g}"
        return low if self.high == float("inf") else f"{low} and below {self.high:g}"


@dataclass(frozen=True, slots=True)
class Optimizer:
    """What `optimizer NAME(…)` says: the name, and the value of every parameter, in the order of `OPTIMIZERS`."""

    name: str
    parameters: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """As it is written in a source, without values that are the defaults."""
        defaults = {each.name: each.default for each in OPTIMIZERS[self.name]}
        return f"{self.name}({', '.join(f'{name}={value:g}' for name, value in self.parameters if value != defaults[name])})"


def _share(name: str, default: float) -> Parameter:
    """What remains of an average at each step."""
    return Parameter(name, default, high=1.0, included=True)


_RATE = Parameter("rate", None)
_EPSILON = Parameter("epsilon", 1e-8)
OPTIMIZERS: Mapping[str, tuple[Parameter, ...]] = MappingProxyType(
    {
        "sgd": (_RATE,),
        "momentum": (_RATE, _share("decay", 0.9)),
        "rmsprop": (_RATE, _share("decay", 0.9), _share("momentum", 0.0), _EPSILON),
        "adam": (_RATE, _share("beta1", 0.9), _share("beta2", 0.999), _EPSILON),
    }
)


def signature(name: str) -> str:
    """How an optimizer is written, with its defaults: `momentum(rate, decay=0.9)`."""
    shown = (each.name if each.default is None else f"{each.name}={each.default:g}" for each in OPTIMIZERS[name])
    return f"{name}({', '.join(shown)})"
