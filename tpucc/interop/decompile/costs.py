"""How much text steps and calls take: estimates in characters, by which functions are chosen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields

from tpucc.interop.decompile.keys import core, head
from tpucc.interop.decompile.program import Function, Number, Step, Weight
from tpucc.interop.decompile.statics import Vector, constant
from tpucc.ir import Attributes
from tpucc.ir.attributes import identities
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.ops.slice import SliceAttributes

WEIGHT = 40
"""The declaration of a weight."""
INDEX = 8
"""The indices of a slice."""
RESULT = 30
"""A second result: it makes a function much harder to read."""
PARAMETER = 10
"""What a call gives to a static parameter."""
PASSED_ON = 6
"""What it gives to one that is given on to another function: these are a tuple, of which each function takes a part."""


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
    own, passed_on = parameters(function)
    return 12 + 4 * len(body.entries) + RESULT * (len(body.results) - 1) + PARAMETER * own + PASSED_ON * passed_on


def parameters(function: Function) -> tuple[int, int]:
    """About how many static parameters a function has, keys, sizes and numbers that differ from call to call, and how many more are there
    only for the attributes of operators in functions that it calls."""
    heads, sizes = set[tuple[str, ...]](), set[Vector]()
    for weight in weights_of(function):
        if not constant(weight.keys):
            heads.add(head(weight.keys)[0])
        sizes.update(zip(*weight.shapes, strict=True))
    for step in function.body.steps:
        if step.attributes:
            sizes.update(_values(step.attributes))
        sizes.update(operand.values for operand in step.operands if isinstance(operand, Number))
    body = function.body
    known = {size for entry in body.entries for size in zip(*body.shapes[entry], strict=True)}
    names = {found[1] if (found := core(keys)) is not None else keys for keys in heads}
    own = {_ratios(size) for size in sizes - known if not constant(size)}
    inner = {value for attributes in _passed_on(function) for value in _values(attributes)}
    return len(names) + len(own), len({_ratios(value) for value in inner - known if not constant(value)} - own)


def numbers(step: Step) -> Hashable:
    """The attributes of a step, or of the operators in the function that it calls."""
    found = (
        [step.attributes]
        if step.function is None
        else [[each[place] for place in step.environments] for each in _attributes_of(step.function)]
    )
    return tuple(tuple(map(identities, each)) for each in found)


def _values(attributes: Sequence[Attributes]) -> Iterator[Vector]:
    return (tuple(getattr(each, field.name) for each in attributes) for field in fields(attributes[0]))


def _passed_on(function: Function) -> Iterator[tuple[Attributes, ...]]:
    """The attributes of each operator in the functions that a function calls, in its own environments."""
    for step in function.body.steps:
        for attributes in _attributes_of(step.function) if step.function is not None else ():
            yield tuple(attributes[place] for place in step.environments)


def _attributes_of(function: Function) -> Iterator[tuple[Attributes, ...]]:
    yield from (step.attributes for step in function.body.steps if step.attributes)
    yield from _passed_on(function)


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
