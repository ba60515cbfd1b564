"""Cells: functions that are the steps of a recurrence. What they take of the step before, and return, has the field's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tpucc.interop.decompile.costs import weights_of
from tpucc.interop.decompile.names import stem
from tpucc.interop.decompile.program import Body, Function, Step, Value

STATES = {1: ("h",), 2: ("h", "c")}
"""The names of so many states, in the order of results: that of the cell, c, is computed before h, and returned behind it."""


def states(bodies: Iterable[Body]) -> dict[Function, dict[Value, str]]:
    """For each cell the names of the states among its entries and results.

    A step takes what a step before it has returned, with the same weights, and a part of the inputs that is another one each time.
    """
    found: dict[Function, dict[int, int]] = {}
    for body in bodies:
        made: dict[Value, tuple[Step, int]] = {}
        for step in body.steps:
            for place, operand in enumerate(step.operands):
                before, index = made.get(operand, (step, 0)) if isinstance(operand, Value) else (step, 0)
                if step.function is not None and before is not step and before.function is step.function and _follows(step, before):
                    found.setdefault(step.function, {}).setdefault(place, index)
            made |= {result: (step, index) for index, result in enumerate(step.results)}
    return {function: named for function, places in found.items() if (named := _named(function, places))}


def _follows(step: Step, before: Step) -> bool:
    """Whether two calls of a function have the same weights, and something else of the inputs."""
    assert step.function is not None
    weights = list(weights_of(step.function))
    same = all(weight.keys[step.environments[0]] == weight.keys[before.environments[0]] for weight in weights)
    others = [operand for operand in step.operands if operand not in before.results]
    return bool(weights) and same and any(operand not in before.operands for operand in others)


def _named(function: Function, places: Mapping[int, int]) -> dict[Value, str]:
    body = function.body
    names = STATES.get(len(body.results), ())
    if len(places) != len(names) or {*places.values()} != {*range(len(names))}:
        return {}
    entries = {body.entries[place]: index for place, index in places.items()}
    own = {index: _usual(body.hints[entry]) for entry, index in entries.items()}
    chosen = [own[index] or name for index, name in enumerate(names)]
    chosen = chosen if len({*chosen}) == len(chosen) else list(names)
    results = {result: name for result, name in zip(body.results, chosen, strict=True) if isinstance(result, Value)}
    return {entry: chosen[index] for entry, index in entries.items()} | results


def _usual(hints: Sequence[str]) -> str:
    """The variable's name that the graph's names of a value come from but for the first: a first state may have another one."""
    stems = {stem(hint) for hint in hints[1:]}
    return stems.pop() if len(stems) == 1 else ""
