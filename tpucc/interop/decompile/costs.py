"""How much text steps and calls take: estimates in characters, by which functions are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from tpucc.interop.decompile.keys import core, head
from tpucc.interop.decompile.program import Function, Step, Weight
from tpucc.interop.decompile.statics import Vector, constant
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.ops.slice import SliceAttributes

WEIGHT = 40
"""The declaration of a weight."""
INDEX = 8
"""The indices of a slice."""
RESULT = 30
"""A second result: it makes a function much harder to read."""


def step_cost(step: Step, calls: Callable[[Function], int]) -> int:
    """The characters of a step, the declarations of its weights included. `calls` is `call_cost`, or what remembers it: a function takes as
    long as it has calls."""
    weights = sum(isinstance(operand, Weight) for operand in step.operands)
    if step.function is not None:
        return calls(step.function) + WEIGHT * weights
    if isinstance(step.attributes[0], SliceAttributes):
        return INDEX
    given = sum(1 for field in fields(step.attributes[0]) if getattr(step.attributes[0], field.name) != field.default)
    return 8 + 4 * len(step.operands) + 8 * given + WEIGHT * weights


def is_heavy(step: Step) -> bool:
    """Whether a step is a layer of its own, or several."""
    if step.function is not None:
        return not step.function.rounds
    return isinstance(legalisation_of(step.op), Matrix)


def call_cost(function: Function) -> int:
    """The characters of a call."""
    body = function.body
    return 12 + 4 * len(body.entries) + RESULT * (len(body.results) - 1) + 10 * parameters(function)


def parameters(function: Function) -> int:
    """About how many static parameters a function has: keys and sizes that differ from call to call."""
    heads, sizes = set[tuple[str, ...]](), set[Vector]()
    for weight in weights_of(function):
        if not constant(weight.keys):
            heads.add(head(weight.keys)[0])
        sizes.update(zip(*weight.shapes, strict=True))
    for step in function.body.steps:
        if step.attributes:
            sizes.update(tuple(getattr(each, field.name) for each in step.attributes) for field in fields(step.attributes[0]))
    body = function.body
    known = {size for entry in body.entries for size in zip(*body.shapes[entry], strict=True)}
    names = {found[1] if (found := core(keys)) is not None else keys for keys in heads}
    varying = {size for size in sizes - known if not constant(size)}
    return len(names) + len(set(map(_ratios, varying)))


def _ratios(values: Vector) -> Vector:
    """Sizes relative to the first: multiples of each other need one parameter. Other values as they are."""
    return tuple(value / values[0] for value in values) if values[0] and all(type(value) is int for value in values) else values


def weights_of(function: Function) -> Iterator[Weight]:
    """All weights that a function declares, and those of the functions that it calls, in its own environments."""
    for step in function.body.steps:
        for operand in step.operands:
            if isinstance(operand, Weight):
                yield operand
        if step.function is not None:
            for weight in weights_of(step.function):
                places = step.environments
                yield Weight(tuple(weight.keys[place] for place in places), tuple(weight.shapes[place] for place in places))
