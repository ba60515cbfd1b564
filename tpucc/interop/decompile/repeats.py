"""Functions for what a program repeats: the same steps in a row at several places become calls of one function.

A *window* is a number of steps in a row. Two windows are alike if their steps apply the same operators to the same of their own values;
sizes, attributes, numbers and keys of weights may differ. Of all windows that occur at least twice, the one that saves the most text
becomes a function, again and again, so that functions call functions: layers, then blocks of layers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import count

from tpucc.interop.decompile.costs import call_cost, is_heavy
from tpucc.interop.decompile.expressions import reads
from tpucc.interop.decompile.program import Body, Function, Number, Operand, Step, Value, Weight
from tpucc.interop.decompile.roundings import share_roundings
from tpucc.interop.decompile.windows import (
    ENTRIES,
    EXITS,
    Window,
    candidates,
    chained_steps,
    exits_of,
    is_natural,
    kind_of,
    last_readers,
    outside,
)

TRIED = 12
"""Candidates of a round that are looked at closely."""
MOST_TRIED = 120
"""Those that are looked at while none of them saves anything: of a cell with many gates, many take too many tensors."""
ROUNDS = 100
MOST_STEPS = 300_000
"""The steps of all bodies that all rounds look at, together: a large network of which no part is like another takes no longer."""
SHORT = 4
"""Steps of a function that stand in one line as well."""
SEVERAL = 0.5
"""By how much a function is worse for each result but the first."""
DEFINITION = 20
"""The characters of a `def` beside those of its body."""


def with_functions(body: Body) -> list[Function]:
    """Makes functions of what a body repeats, and changes the body. The functions are in an order in which none calls a later one."""
    values = count(1 + max((value.index for value in body.shapes), default=0))
    share_roundings(body, values)
    functions: list[Function] = []
    looked_at = 0
    for _ in range(ROUNDS):
        bodies = [body, *(function.body for function in functions)]
        looked_at += sum(len(inner.steps) for inner in bodies)
        found = _best(bodies, values) if not functions or looked_at <= MOST_STEPS else None
        if found is None:
            break
        windows, function, exits = found
        functions.append(function)
        _replace(windows, function, exits)
    _inline(body, functions, values)
    return _in_order(body)


def _inline(body: Body, functions: Sequence[Function], values: Iterator[int]) -> None:
    """Takes functions back that save hardly a line: all of what they compute stands in few lines again."""
    bodies = [body, *(function.body for function in functions)]
    for function in functions:
        sites = sum(step.function is function for inner in bodies for step in inner.steps)
        lines = sum(is_heavy(step) or len(reads(step)) > 1 for step in function.body.steps)
        if _has_weights(function) or sites * (lines - 1) > lines + 2 or (lines == 1 and len(function.body.steps) > SHORT):
            continue
        for inner in bodies:
            inner.steps = [
                made for step in inner.steps for made in (_inlined(step, function, inner, values) if step.function is function else (step,))
            ]
        bodies.remove(function.body)


def _has_weights(function: Function) -> bool:
    return any(isinstance(operand, Weight) for step in function.body.steps for operand in step.operands)


def _inlined(call: Step, function: Function, body: Body, values: Iterator[int]) -> Iterator[Step]:
    """The steps of a function in the place of a call."""
    inner = function.body
    places = call.environments
    renamed: dict[Operand, Operand] = dict(zip(inner.entries, call.operands, strict=True))
    renamed.update((result, value) for result, value in zip(inner.results, call.results, strict=True))
    for step in inner.steps:
        for result in step.results:
            value = renamed.setdefault(result, Value(next(values)))
            assert isinstance(value, Value)
            body.shapes[value] = tuple(inner.shapes[result][place] for place in places)
            body.hints[value] = tuple(inner.hints[result][place] for place in places)
        operands = tuple(
            Number(tuple(operand.values[place] for place in places)) if isinstance(operand, Number) else renamed[operand]
            for operand in step.operands
        )
        results = tuple(value for result in step.results if isinstance(value := renamed[result], Value))
        attributes = tuple(step.attributes[place] for place in places) if step.attributes else ()
        environments = tuple(step.environments[place] for place in places) if step.environments else ()
        yield Step(step.op, operands, results, attributes, step.function, environments)


def _best(bodies: Sequence[Body], values: Iterator[int]) -> tuple[tuple[Window, ...], Function, tuple[tuple[int, int], ...]] | None:
    """The windows that save the most, and their function."""
    best, most, tried = None, 0.0, 0
    readers = {id(body): last_readers(body) for body in bodies}
    numbers: dict[Hashable, int] = {}  # which are compared sooner than what they stand for
    kinds = {id(body): [numbers.setdefault(kind_of(body, step), len(numbers)) for step in body.steps] for body in bodies}
    chained = {id(body): chained_steps(body, kinds[id(body)]) for body in bodies}
    for candidate in sorted(candidates(bodies, kinds, chained), key=lambda candidate: -candidate.most):
        if candidate.most <= most or tried >= (TRIED if best is not None else MOST_TRIED):
            break
        windows = candidate.windows
        exits = exits_of(windows, readers)
        if not 1 <= len(exits) <= EXITS or not is_natural(windows, chained):
            continue
        tried += 1
        if len(outside(windows[0])) > ENTRIES:
            continue
        function = merged(windows, exits, values)
        saved = candidate.bound - len(windows) * call_cost(function) - DEFINITION
        saved *= candidate.share * SEVERAL ** (len(exits) - 1)
        if saved > most:
            best, most = (windows, function, exits), saved
    return best


# Making functions


def merged(windows: Sequence[Window], exits: Sequence[tuple[int, int]], values: Iterator[int]) -> Function:
    """The function of windows that are alike. Its environments are those of all windows, one after the other."""
    first = windows[0]
    body = Body((), [], ())
    own = {result for step in first.steps for result in step.results}
    renamed: dict[Operand, Operand] = {}
    for place in range(first.length):
        steps = [window.body.steps[window.start + place] for window in windows]
        for operands in zip(*(step.operands for step in steps), strict=True):
            known = operands[0]
            if isinstance(known, Value) and known not in own and known not in renamed:
                renamed[known] = entry = Value(next(values))
                body.entries += (entry,)
                _note(body, entry, windows, operands)
        for results in zip(*(step.results for step in steps), strict=True):
            _note(body, results[0], windows, results)
        body.steps.append(_merged_step(steps, renamed))
    body.results = tuple(first.steps[place].results[index] for place, index in exits)
    return Function(body)


def _note(body: Body, value: Value, windows: Sequence[Window], values: Sequence[Operand]) -> None:
    """Notes of a function's value what the bodies of the windows say of theirs."""
    pairs = [(window.body, found) for window, found in zip(windows, values, strict=True) if isinstance(found, Value)]
    body.shapes[value] = tuple(shape for inner, found in pairs for shape in inner.shapes[found])
    body.hints[value] = tuple(hint for inner, found in pairs for hint in inner.hints[found])


def _merged_step(steps: Sequence[Step], renamed: dict[Operand, Operand]) -> Step:
    first = steps[0]
    operands = tuple(_merged_operand(operands, renamed) for operands in zip(*(step.operands for step in steps), strict=True))
    attributes = tuple(attributes for step in steps for attributes in step.attributes)
    environments = tuple(environment for step in steps for environment in step.environments)
    return Step(first.op, operands, first.results, attributes, first.function, environments)


def _merged_operand(operands: Sequence[Operand], renamed: dict[Operand, Operand]) -> Operand:
    match operands[0]:
        case Weight():
            weights = [operand for operand in operands if isinstance(operand, Weight)]
            return Weight(tuple(key for weight in weights for key in weight.keys), tuple(s for weight in weights for s in weight.shapes))
        case Number():
            return Number(tuple(value for operand in operands if isinstance(operand, Number) for value in operand.values))
        case value:
            return renamed.get(value, value)


def _replace(windows: Sequence[Window], function: Function, exits: Sequence[tuple[int, int]]) -> None:
    """Puts calls of the function in the places of the windows."""
    first = 0
    calls: list[tuple[Window, Step]] = []
    for window in windows:
        operands = tuple(outside(window))
        results = tuple(window.steps[place].results[index] for place, index in exits)
        environments = range(first, first + _environments(window))
        first = environments.stop
        calls.append((window, Step("", operands, results, (), function, tuple(environments))))
    for window, call in reversed(calls):
        window.body.steps[window.start : window.start + window.length] = [call]


def _environments(window: Window) -> int:
    return len(window.body.shapes[window.steps[0].results[0]])


def _in_order(body: Body) -> list[Function]:
    """The functions that a body calls, and those that these call, each behind those that it calls itself."""
    found: dict[Function, None] = {}

    def visit(inner: Body) -> None:
        for step in inner.steps:
            if step.function is not None and step.function not in found:
                visit(step.function.body)
                found[step.function] = None

    visit(body)
    return list(found)
