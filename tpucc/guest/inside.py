"""What a child does for a pass or a stage of a file: it runs them as the compiler would in its own process."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import numpy as np

from tpucc.guest.graphs import constants_of, graph_values
from tpucc.ir import Graph
from tpucc.passes.base import Context, GraphPass, with_options
from tpucc.plugins.brought import PARTS, attributes_of, defaults_of, passes_in, run_of
from tpucc.plugins.checked import rewritten, verify_rewritten
from tpucc.plugins.code import place_of

_passes: dict[str, list[Any]] = {}
"""The passes of each module: classes until they are made."""


def ready() -> None:
    """Answers once this process is there."""


def functions(module: ModuleType) -> dict[str, tuple[str, int]]:
    """Where each name of a module is written that can be called."""
    return {name: place_of(value) for name, value in vars(module).items() if callable(value)}


def passes(module: ModuleType) -> list[tuple[str, str, int]]:
    """The passes of a module: the name of each one's class, and the file and the line of its `run`."""
    found = _passes[module.__name__] = passes_in(module)
    return [(getattr(each, "__name__", type(each).__name__), *place_of(run_of(each))) for each in found]


def make(module: ModuleType, number: int) -> tuple[Any, dict[str, object]]:
    """Makes a pass with its default options, of its class; returns what it says of itself, and these."""
    made = _passes[module.__name__]
    step = made[number] = made[number] if type(made[number]) is GraphPass else made[number]()
    return attributes_of(step), defaults_of(step)


def no_pass(module: ModuleType) -> dict[str, Any]:
    """What a module has instead of a pass: the parts that its own classes lack, and its own functions."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    classes = {value.__name__: [part for part in PARTS if not hasattr(value, part)] for value in own if inspect.isclass(value)}
    return {"classes": classes, "functions": [value.__name__ for value in own if inspect.isfunction(value)]}


def run(module: ModuleType, number: int, values: Mapping[str, object], graph: Graph, context: Mapping[str, Any]) -> dict[str, Any] | None:
    """The graph that a pass makes, verified, as values that travel; None where it is the one that it was given."""
    for constant in constants_of(graph):
        constant.data.setflags(write=False)  # which pickle has forgotten
    step = with_options(_passes[module.__name__][number], values)
    result = rewritten(lambda given: step.run(given, Context(**context)), graph)
    if result is graph:
        return None
    verify_rewritten(result, graph)
    return graph_values(result, graph)


def stage(module: ModuleType, name: str, *arguments: Any) -> Any:
    """What a stage gives. It can read its arguments, not write them."""
    for value in arguments:
        for field in fields(value) if is_dataclass(value) else ():
            if isinstance(array := getattr(value, field.name), np.ndarray):
                array.setflags(write=False)
    found = getattr(module, name)(*arguments)
    return np.asarray(found) if hasattr(type(found), "__array__") else found
