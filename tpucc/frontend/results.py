"""What a model returns: the names of its outputs, and whether they are what its arrow declares."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.diagnostics import Label, Span, counted
from tpucc.frontend import ast
from tpucc.frontend.frame import Frame
from tpucc.frontend.problem import Problem
from tpucc.frontend.values import Items, Poison, Tensor, Value, describe, poisoned
from tpucc.ir.types import TensorType

Declared = Sequence[tuple[TensorType | Poison, Span]] | None


def declare_outputs(frame: Frame, declared: Declared) -> None:
    """Makes the returned values the outputs of the graph; reports what is no tensor, and what isn't as declared."""
    assert frame.returned is not None
    if not frame.returned or isinstance(frame.result, Poison):
        return
    places = _places(frame.returned, frame.result)
    spread = len(frame.returned) == 1 and isinstance(frame.result, Items) and places[0] is frame.returned[0]
    values = frame.result.values if isinstance(frame.result, Items) else (frame.result,)
    if poisoned(frame.result):
        return
    if declared is not None and len(declared) != len(values):
        _report_count(frame, declared, values, places)
    names: set[str] = set()
    for index, (value, place) in enumerate(zip(values, places, strict=True)):
        if not isinstance(value, Tensor):
            mend = "a result is what the model computes: a tensor"
            frame.report(Problem("E0224", f"the model returns {describe(value)}", place.span, "", mend))
            continue
        if declared is not None and len(declared) == len(values):
            _require_type(frame, value, place, *declared[index])
        name = _name(None if spread else place, index, len(values), names)
        names.add(name)
        frame.run.graph.output(name, value.node.name)


def _places(returned: tuple[ast.Expression, ...], result: Value) -> tuple[ast.Expression, ...]:
    """The expression of each result; a call or a variable that is a list stands for all of its parts."""
    if len(returned) > 1 or not isinstance(result, Items):
        return returned
    return ast.parts(returned[0], len(result.values))


def _name(place: ast.Expression | None, index: int, count: int, taken: set[str]) -> str:
    """The name of an output: its variable's; a `place` of None is a part of a list, which has none of its own."""
    if isinstance(place, ast.Name) and place.text not in taken:
        return place.text
    name = "out" if count == 1 else f"out{index}"
    while name in taken:
        name += "_"
    return name


def _report_count(frame: Frame, declared: Sequence[tuple[object, Span]], values: Sequence[Value], places: Sequence[ast.Expression]) -> None:
    note = (Label(declared[0][1], f"{counted(len(declared), 'result')} declared here"),)
    message = f"the model declares {counted(len(declared), 'result')}, but returns {len(values)}"
    frame.report(Problem("E0322", message, places[0].span.to(places[-1].span), notes=note))


def _require_type(frame: Frame, value: Tensor, place: ast.Expression, type_: TensorType | Poison, span: Span) -> None:
    if isinstance(type_, Poison) or value.type.plain() == type_.plain():
        return
    shown = place.text if isinstance(place, ast.Name) else "it"
    note = (Label(span, f"declared {type_.brief} here"),)
    message = f"the model declares {type_.brief}, but returns {value.type.brief}"
    frame.report(Problem("E0323", message, place.span, f"{shown} is {value.type.brief}", notes=note))
