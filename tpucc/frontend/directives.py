"""The directives of a source: `weights`, `calibration`, `activations`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tpucc.diagnostics import Label, Span, did_you_mean, listed
from tpucc.frontend import ast
from tpucc.frontend.expressions import evaluate
from tpucc.frontend.frame import Frame, Run
from tpucc.frontend.problem import Problem
from tpucc.frontend.values import Poison, Value, describe, is_integer
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, DeviceFormat


@dataclass(frozen=True)
class Directives:
    """The values of the directives; None for those that are missing.

    `weights` and `calibration` are paths as they are written; with `random_seed` the weights are drawn. The spans are those of the
    directives' values.
    """

    weights: str | None = None
    weights_span: Span | None = None
    random_seed: int | None = None
    calibration: str | None = None
    calibration_span: Span | None = None
    activations: DeviceFormat = DEFAULT_FORMAT


def read_directives(module: ast.Module, run: Run) -> Directives:
    """The directives of a module; what is wrong is reported."""
    found, seen, frame = Directives(), dict[str, Span](), Frame(run)
    for item in module.items:
        if not isinstance(item, ast.Directive):
            continue
        try:
            if item.keyword in seen:
                note = (Label(seen[item.keyword], "first here"),)
                raise Problem("E0228", f"{item.keyword} is said twice", item.span, "", "keep one of them", notes=note)
            seen[item.keyword] = item.span
            found = replace(found, **_read(item, frame))
        except Problem as problem:
            frame.report(problem)
    return found


def _read(item: ast.Directive, frame: Frame) -> dict[str, Any]:
    """The fields of `Directives` that a directive sets."""
    if item.keyword == "activations":
        return {"activations": _format(item.value)}
    if item.keyword == "calibration":
        return {"calibration": _path(item, frame), "calibration_span": item.value.span}
    if isinstance(item.value, ast.Call) and isinstance(item.value.function, ast.Name) and item.value.function.text == "random":
        return {"random_seed": _seed(item.value, frame), "weights_span": item.value.span}
    return {"weights": _path(item, frame), "weights_span": item.value.span}


def _format(value: ast.Expression) -> DeviceFormat:
    name = value.text if isinstance(value, ast.Name) else ""
    if name not in DEVICE_FORMATS:
        raise Problem("E0227", f"activations are {listed([*DEVICE_FORMATS], 'or')}", value.span, "", did_you_mean(name, DEVICE_FORMATS))
    return DEVICE_FORMATS[name]


def _path(item: ast.Directive, frame: Frame) -> str | None:
    if isinstance(item.value, ast.Attribute):
        name = frame.run.excerpt(item.value.span) or f"{item.keyword}.npz"
        raise Problem("E0227", "the name of a file stands in quotation marks", item.value.span, "", f'{item.keyword} "{name}"')
    value = evaluate(frame, item.value)
    if isinstance(value, Poison):
        return None
    if not isinstance(value, str) or not value:
        mend = f'{item.keyword} "{item.keyword}.npz"' + (", or weights random(seed=0)" if item.keyword == "weights" else "")
        found = "an empty string" if value == "" else describe(value)
        raise Problem("E0227", f"{item.keyword} names a file, and this is {found}", item.value.span, "", mend)
    return value


def _seed(node: ast.Call, frame: Frame) -> int | None:
    """The seed of `random(seed=0)`; None when it is wrong in itself."""
    if len(node.arguments) != 1 or (node.arguments[0].name is not None and node.arguments[0].name.text != "seed"):
        raise Problem("E0227", "random takes a seed, and nothing else", node.span, "", "weights random(seed=0)")
    argument = node.arguments[0]
    value: Value = evaluate(frame, argument.value)
    if isinstance(value, Poison):
        return None
    if not is_integer(value) or value < 0:
        raise Problem("E0227", f"a seed is an integer from 0 up, and this is {describe(value)}", argument.value.span)
    return value
