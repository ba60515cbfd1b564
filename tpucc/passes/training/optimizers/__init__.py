"""The optimizers: one a file, each a function that writes the new value of one state as operators.

`OPTIMIZERS` maps the language's name to the function. Its keyword arguments are the optimizer's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tpucc.ops.gradient import Value
from tpucc.passes.training.optimizers import adam, momentum, rmsprop, sgd

OPTIMIZERS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {"sgd": sgd.update, "momentum": momentum.update, "rmsprop": rmsprop.update, "adam": adam.update}
)
