"""The directives of a source: `weights`, `calibration`, `activations`; and for training `examples`, `optimizer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tpucc.diagnostics import Label, Span, did_you_mean, listed
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, DeviceFormat
from tpucc.language import ast
from tpucc.language.calls import Callee, bind
from tpucc.language.expressions import required_value
from tpucc.language.frame import Frame, Run
from tpucc.language.problem import Problem, Unknown
from tpucc.language.values import describe, is_integer, is_number

FOR_TRAINING = frozenset({"examples", "optimizer"})
"""The directives that only training reads."""


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
    """The optimizer of a source: its name, and the value of every parameter, in the order of `OPTIMIZERS`."""

    name: str
    parameters: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """As it is written in a source, without values that are the defaults."""
        defaults = {each.name: each.default for each in OPTIMIZERS[self.name]}
        return f"{self.name}({', '.join(f'{name}={value:g}' for name, value in self.parameters if value != defaults[name])})"


def _share(name: str, default: float) -> Parameter:
    """The share of an average that remains at each step."""
    return Parameter(name, default, high=1.0, included=True)


_RATE = Parameter("rate", None)
_EPSILON = Parameter("epsilon", 1e-8)
OPTIMIZERS: Mapping[str, tuple[Parameter, ...]] = {
    "sgd": (_RATE,),
    "momentum": (_RATE, _share("decay", 0.9)),
    "rmsprop": (_RATE, _share("decay", 0.9), _share("momentum", 0.0), _EPSILON),
    "adam": (_RATE, _share("beta1", 0.9), _share("beta2", 0.999), _EPSILON),
}
"""The optimizers of the language: their names and parameters."""


def signature(name: str) -> str:
    """How an optimizer is written, with its defaults: `momentum(rate, decay=0.9)`."""
    shown = (each.name if each.default is None else f"{each.name}={each.default:g}" for each in OPTIMIZERS[name])
    return f"{name}({', '.join(shown)})"


@dataclass(frozen=True)
class Directives:
    """The values of the directives; None for those that are missing.

    `weights` and `calibration` are paths as they are written; with `random_seed` the weights are drawn. Each span is the place
    of a directive's value.
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

    `examples` is a path as it is written. The span is the place of the directive's value.
    """

    examples: str | None = None
    examples_span: Span | None = None
    optimizer: Optimizer | None = None


def read_directives(module: ast.Module, run: Run) -> tuple[Directives, TrainingDirectives]:
    """The directives of a module; what is wrong is reported."""
    found, seen, frame = dict[str, Any](), dict[str, Span](), Frame(run)
    for item in module.of(ast.Directive):
        try:
            if item.keyword in seen:
                note = (Label(seen[item.keyword], "first here"),)
                raise Problem("E0228", f"{item.keyword} is said twice", item.span, "", "keep one of them", notes=note)
            seen[item.keyword] = item.span
            found |= _read(item, frame)
        except (Problem, Unknown) as wrong:
            frame.report(wrong)
    for_training = {each.name: found.pop(each.name) for each in fields(TrainingDirectives) if each.name in found}
    return Directives(**found), TrainingDirectives(**for_training)


def _read(item: ast.Directive, frame: Frame) -> dict[str, Any]:
    """The fields of `Directives` and `TrainingDirectives` that a directive sets. Raises `Problem` and `Unknown`."""
    keyword, value = item.keyword, item.value
    if keyword == "activations":
        return {keyword: _format(value)}
    if keyword == "optimizer":
        return {keyword: _optimizer(value, frame)}
    if keyword == "weights" and isinstance(value, ast.Call) and isinstance(function := value.function, ast.Name):
        if function.text == "random":
            return {"random_seed": _seed(value, frame), "weights_span": value.span}
        if function.text not in frame.run.functions:
            raise Problem("E0203", f"weights has no function {function.text}", function.span, "", "write weights random(seed=0)")
    return {keyword: _path(item, frame), f"{keyword}_span": value.span}


def _format(value: ast.Expression) -> DeviceFormat:
    name = value.text if isinstance(value, ast.Name) else ""
    if name not in DEVICE_FORMATS:
        raise Problem("E0227", f"activations are {listed([*DEVICE_FORMATS], 'or')}", value.span, "", did_you_mean(name, DEVICE_FORMATS))
    return DEVICE_FORMATS[name]


def _path(item: ast.Directive, frame: Frame) -> str:
    if isinstance(item.value, ast.Attribute):
        name = frame.run.excerpt(item.value.span) or f"{item.keyword}.npz"
        raise Problem("E0227", "the name of a file stands in quotation marks", item.value.span, "", f'{item.keyword} "{name}"')
    value = required_value(frame, item.value)
    if not isinstance(value, str) or not value:
        mend = f'{item.keyword} "{item.keyword}.npz"' + (", or weights random(seed=0)" if item.keyword == "weights" else "")
        found = "an empty string" if value == "" else describe(value)
        raise Problem("E0227", f"{item.keyword} names a file, and this is {found}", item.value.span, "", mend)
    return value


def _seed(node: ast.Call, frame: Frame) -> int:
    """The seed of `random(seed=0)`."""
    if len(node.arguments) != 1 or (node.arguments[0].name is not None and node.arguments[0].name.text != "seed"):
        raise Problem("E0227", "random takes a seed, and nothing else", node.span, "", "weights random(seed=0)")
    argument = node.arguments[0].value
    value = required_value(frame, argument)
    if not is_integer(value) or value < 0:
        raise Problem("E0227", f"a seed is an integer from 0 up, and this is {describe(value)}", argument.span)
    return value


def _optimizer(node: ast.Expression, frame: Frame) -> Optimizer:
    """The optimizer of `adam(rate=0.002)`, or of a name alone."""
    function, arguments = (node.function, node.arguments) if isinstance(node, ast.Call) else (node, ())
    if not isinstance(function, ast.Name):
        raise Problem("E0925", "expected the name of an optimizer", function.span, "", "write optimizer adam(rate=0.001)")
    name = function.text
    if name not in OPTIMIZERS:
        mend = did_you_mean(name.lower(), OPTIMIZERS) or f"the optimizers are {listed([*OPTIMIZERS])}"
        raise Problem("E0925", f"no optimizer is named {name}", function.span, "", mend)
    formals = tuple((each.name, each.default is None) for each in OPTIMIZERS[name])
    nodes = [argument.value for argument in arguments]
    bound = bind(Callee(name, formals, None, signature(name), "optimizer"), arguments, nodes, node.span)
    values = [(each.name, _setting(name, each, bound, frame)) for each in OPTIMIZERS[name]]
    settings = tuple((parameter, value) for parameter, value in values if value is not None)
    if len(settings) < len(values):
        raise Unknown
    return Optimizer(name, settings)


def _setting(name: str, each: Parameter, bound: Mapping[str, ast.Expression], frame: Frame) -> float | None:
    """The value of a parameter: what is bound to it, or its default; None for one that is wrong, which is reported."""
    if each.name not in bound:
        return each.default
    try:
        value = required_value(frame, bound[each.name])
        if not is_number(value) or not each.allows(value):
            raise Problem("E0926", f"{each.name} of {name} must be {each.range}, found {describe(value)}", bound[each.name].span)
        with np.errstate(over="ignore"):
            held = float(np.float32(value))
        if not each.allows(held):
            message = f"{each.name} of {name} must be {each.range}, and in float32 {float(value)!r} is {held:g}"
            raise Problem("E0926", message, bound[each.name].span)
        return float(value)
    except (Problem, Unknown) as wrong:
        frame.report(wrong)
        return None
