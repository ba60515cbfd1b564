"""The directives of a source: `weights`, `calibration`, `activations`; and for training `examples`, `optimizer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tpucc.diagnostics import Label, Span, did_you_mean, listed
from tpucc.frontend import ast
from tpucc.frontend.binding import Callee, bind
from tpucc.frontend.expressions import evaluate
from tpucc.frontend.frame import Frame, Run
from tpucc.frontend.optimizers import OPTIMIZERS, Optimizer, Parameter, signature
from tpucc.frontend.problem import Problem
from tpucc.frontend.values import Poison, Value, describe, is_integer, is_number, poisoned
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, DeviceFormat

FOR_TRAINING = frozenset({"examples", "optimizer"})
"""The directives that only training reads."""


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


@dataclass(frozen=True)
class TrainingDirectives:
    """The values of the directives that only training reads; None for those that are missing.

    `examples` is a path as it is written. The span is that of the directive's value.
    """

    examples: str | None = None
    examples_span: Span | None = None
    optimizer: Optimizer | None = None


def read_directives(module: ast.Module, run: Run) -> tuple[Directives, TrainingDirectives]:
    """The directives of a module; what is wrong is reported."""
    found, training, seen, frame = Directives(), TrainingDirectives(), dict[str, Span](), Frame(run)
    for item in module.items:
        if not isinstance(item, ast.Directive):
            continue
        try:
            if item.keyword in seen:
                note = (Label(seen[item.keyword], "first here"),)
                raise Problem("E0228", f"{item.keyword} is said twice", item.span, "", "keep one of them", notes=note)
            seen[item.keyword] = item.span
            if item.keyword in FOR_TRAINING:
                training = replace(training, **_read_for_training(item, frame))
            else:
                found = replace(found, **_read(item, frame))
        except Problem as problem:
            frame.report(problem)
    return found, training


def _read_for_training(item: ast.Directive, frame: Frame) -> dict[str, Any]:
    """The fields of `TrainingDirectives` that a directive sets."""
    if item.keyword == "examples":
        return {"examples": _path(item, frame), "examples_span": item.value.span}
    return {"optimizer": _optimizer(item.value, frame)}


def _read(item: ast.Directive, frame: Frame) -> dict[str, Any]:
    """The fields of `Directives` that a directive sets."""
    if item.keyword == "activations":
        return {"activations": _format(item.value)}
    if item.keyword == "calibration":
        return {"calibration": _path(item, frame), "calibration_span": item.value.span}
    if isinstance(item.value, ast.Call) and isinstance(function := item.value.function, ast.Name):
        if function.text == "random":
            return {"random_seed": _seed(item.value, frame), "weights_span": item.value.span}
        if function.text not in frame.run.functions:
            raise Problem("E0203", f"weights has no function {function.text}", function.span, "", "write weights random(seed=0)")
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


def _optimizer(node: ast.Expression, frame: Frame) -> Optimizer | None:
    """The optimizer of `adam(rate=0.002)`, or of a name alone; None when a value is wrong in itself."""
    function, arguments = (node.function, node.arguments) if isinstance(node, ast.Call) else (node, ())
    if not isinstance(function, ast.Name):
        raise Problem("E0925", "expected the name of an optimizer", function.span, "", "write optimizer adam(rate=0.001)")
    name = function.text
    if name not in OPTIMIZERS:
        mend = did_you_mean(name.lower(), OPTIMIZERS) or f"the optimizers are {listed([*OPTIMIZERS])}"
        raise Problem("E0925", f"no optimizer is named {name}", function.span, "", mend)
    formals = tuple((each.name, each.default is None) for each in OPTIMIZERS[name])
    bound = bind(Callee(name, formals, None, signature(name), "optimizer"), arguments, node.span)
    values = [_setting(name, each, bound, frame) for each in OPTIMIZERS[name]]
    known = [(name, value) for name, value in values if value is not None]
    return Optimizer(name, tuple(known)) if len(known) == len(values) else None


def _setting(name: str, each: Parameter, bound: Mapping[str, ast.Argument], frame: Frame) -> tuple[str, float | None]:
    """A parameter's name and value: what is bound to it, or its default; None for one that is wrong, which is reported."""
    if each.name not in bound:
        return each.name, each.default
    argument = bound[each.name].value
    value = evaluate(frame, argument)
    if poisoned(value):
        return each.name, None
    if not is_number(value) or not each.allows(value):
        message = f"{each.name} of {name} must be {each.range}, found {describe(value)}"
        frame.report(Problem("E0926", message, argument.span))
        return each.name, None
    with np.errstate(over="ignore"):
        held = float(np.float32(value))
    if not each.allows(held):
        message = f"{each.name} of {name} must be {each.range}, and in float32 {float(value)!r} is {held:g}"
        frame.report(Problem("E0926", message, argument.span))
        return each.name, None
    return each.name, float(value)
