"""The contents of an ONNX file as values: what `file.py` makes bytes of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpucc.interop.onnx.functions import Function
from tpucc.ir.types import Quantisation, TensorType
from tpucc.numerics import AnyArray

OPSET, IR_VERSION = 21, 10


@dataclass(frozen=True, slots=True)
class Activation:
    """The function that ends a layer: of its table, or its clamp.

    `before` are the scale and the zero point of what a table is applied to, where these are sums of the layer, and not integers of
    another one. `weight` is that which the function's first number is; the number is its opposite where the source subtracts it.
    """

    function: Function
    before: Quantisation | None = None
    weight: Weight | None = None
    is_subtracted: bool = False


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight of the model, of which a constant is a form: its key in the weight file, and its shape in the source; whether the form is
    that of the transposed matrix, or of the opposite of the weight's one value, or has other values than another form, as with a scale
    folded in."""

    key: str
    shape: tuple[int, ...]
    is_turned: bool = False
    is_subtracted: bool = False
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node with one result. `name` is that of the node of our graph that it ends, or else the result's.

    An input that is left out has no name. `origin` are the places in the source. `held` are the scale and the
    zero point of integers which are a layer's result, `activation` the function that ends it.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    result: str
    attributes: Mapping[str, Any]
    origin: str = ""
    held: Quantisation | None = None
    activation: Activation | None = None


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A graph: nodes in order, constants by name, inputs and outputs with their types, inputs with the ranges that the source says.
    `weights` are those which constants are forms of, by the names of these."""

    name: str
    nodes: tuple[OnnxNode, ...]
    initializers: Mapping[str, AnyArray]
    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    weights: Mapping[str, Weight]
