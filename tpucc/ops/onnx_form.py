"""The ONNX form of an operator: the nodes of an ONNX graph that compute the same.

A form is a function that is called with the operator's attributes and its operands' names, and asks for nodes. It knows nothing of the
package onnx: what is asked for becomes a file in `tpucc.interop.onnx.writing`. Forms are of opset 21.

ONNX has images channels first, [N, C, H, W], and the language has them last. A form says by its `Layout` in which order it takes the axes
of its operands. So whoever calls it turns as few values as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np

from tpucc.ir import Attributes, TensorType
from tpucc.numerics import AnyArray

CHANNELS_FIRST = (0, 3, 1, 2)
"""The axes of [N, H, W, C] in the order [N, C, H, W]."""
CHANNELS_LAST = (0, 2, 3, 1)
"""The way back."""


class Layout(Enum):
    """The order of the axes in which a form takes its operands and gives its result."""

    OWN = "as the language has them"
    IMAGES = "the first operand and the result channels first, where they have four axes; others as the language has them"
    ANY = "any, the same for all of them"


class Nodes(Protocol):
    """Makes nodes of an ONNX graph. Values are known by their names."""

    def node(self, op: str, inputs: Sequence[str], attributes: dict[str, Any]) -> str:
        """The first result of a node. An input that is left out has no name."""
        ...

    def constant(self, value: AnyArray, role: str) -> str: ...

    def permuted(self, operand: int, perm: Sequence[int]) -> str:
        """An operand of the operator with its axes in another order; of a constant, another constant."""
        ...

    def made_of(self, operand: int, value: AnyArray) -> str:
        """A constant with the values of an operand that is one, in another form and under its name."""
        ...

    def real(self, mask: str) -> str:
        """A boolean value as 0.0 and 1.0."""
        ...

    def boolean(self, mask: str) -> str:
        """Where a value isn't 0."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """An operator as its form sees it.

    `operands` are names of values, `types` their types and `result` that of the result, as the language has them. `values` has the arrays
    of those operands that are constants. With `channels_first` the axes of all that has four are [N, C, H, W].
    """

    attributes: Any
    operands: tuple[str, ...]
    types: tuple[TensorType, ...]
    values: tuple[AnyArray | None, ...]
    result: TensorType
    channels_first: bool
    nodes: Nodes

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """The result of an ONNX operator; attributes that are None are left out."""
        return self.nodes.node(op, inputs, {name: value for name, value in attributes.items() if value is not None})

    def constant(self, value: AnyArray, role: str = "constant") -> str:
        return self.nodes.constant(value, role)

    def number(self, value: float, role: str = "number") -> str:
        """A scalar, float32."""
        return self.constant(np.asarray(value, np.float32), role)

    def integers(self, values: Sequence[int], role: str) -> str:
        """A vector of int64: how ONNX takes shapes, axes and the like."""
        return self.constant(np.asarray(values, np.int64).reshape(len(values)), role)

    def reshaped(self, value: str, *shape: int) -> str:
        return self.node("Reshape", value, self.integers(shape, "shape"))

    def axis(self, axis: int) -> int:
        """Where an axis of the language is in the present order; negative ones count from the end."""
        axis %= self.result.rank
        return CHANNELS_FIRST.index(axis) if self.channels_first else axis

    def by_axis(self, values: Sequence[Any]) -> list[Any]:
        """Values for each axis of the language, in the present order of the axes."""
        return [values[axis] for axis in CHANNELS_FIRST] if self.channels_first else list(values)

    def applied(self, form: OnnxForm, attributes: Attributes, value: str) -> str:
        """A function of one value, by the form of its operator."""
        assert isinstance(form, Form)
        return form.function(replace(self, attributes=attributes, operands=(value,), types=(self.result,), values=(None,)))


@dataclass(frozen=True, slots=True)
class Form:
    """The operator as ONNX nodes: `function` makes them, and returns the name of the result of the last one. `same` is the operator of ONNX
    that is this one, without attributes; empty where there is none."""

    function: Callable[[Call], str]
    layout: Layout = Layout.OWN
    same: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """No node: the operator is an input or an initializer of the ONNX graph; `what` says which."""

    what: str


@dataclass(frozen=True, slots=True)
class NoForm:
    """The operator isn't exported; `why` says the reason."""

    why: str


OnnxForm = Form | Declared | NoForm


def of_elements(op: str, **attributes: Any) -> Form:
    """The form of a function of elements that ONNX has by the name `op`, with these attributes."""
    return Form(lambda g: g.node(op, *g.operands, **attributes), Layout.ANY, "" if attributes else op)


def of_elements_with(op: str, *names: str) -> Form:
    """As `of_elements`, with the attributes of these names, which are the operator's too."""
    return Form(lambda g: g.node(op, *g.operands, **{name: float(getattr(g.attributes, name)) for name in names}), Layout.ANY)


def clipped(g: Call, low: float, high: float) -> str:
    """The operand limited to low…high."""
    return g.node("Clip", g.operands[0], g.number(low, "low"), g.number(high, "high"))


def constant_of(value: Callable[[Any], float]) -> Form:
    """The form of a constant of one value, repeated; `value` tells it by the attributes."""

    def function(g: Call) -> str:
        return g.node("ConstantOfShape", g.integers(g.result.shape, "shape"), value=np.asarray([value(g.attributes)], np.float32))

    return Form(function)
