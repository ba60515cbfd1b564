"""The steps of a layer as the export writes them, and that each of their constants is used, or is the one that is written there.

A step has constants that say nothing of their own: the zero point of integers that are held with one already, the scale 1 of
QuantizeLinear, weights' zero points of 0, kernels of ones. Nothing is made of them, so that another value is damage.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tpucc.interop.onnx.reading.exported.steps import FLOAT32, INT32
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import changed, shortened
from tpucc.ir.dtypes import I8, I16
from tpucc.ir.types import Quantisation
from tpucc.numerics import EXACT, AnyArray

ENDS = {"QLinearConv": 7, "QLinearMatMul": 7, "QuantizeLinear": 2}
"""What makes integers of sums, and the operand that is their zero point."""
IMAGE_AXES = [2, 3]
"""Height and width in ONNX."""
WINDOWS = ("kernel_shape", "strides", "pads")
"""The attributes of a Conv that sums windows, beside `group`."""


class UnknownSteps(Exception):
    """The steps are none that are read back."""


class LayerSteps:
    """The nodes and constants of a graph, and the layer that is being read."""

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.constants = dict(graph.constants)
        self.made = {name: node for node in graph.nodes if not node.domain for name in node.outputs}
        """The nodes of ONNX's own operators by their results: those of another domain are no steps."""
        self.format = I16 if any(self._zero_type(node) == I16.numpy for node in graph.nodes) else I8
        self.held: dict[str, Quantisation] = {}
        """How integers stand for real values."""
        self.own = Quantisation(1.0, 0)
        """How the layer's integers are held."""

    def _step(self, name: str, op: str = "") -> OnnxNode:
        """The node that makes a value. Raises `UnknownSteps` for one of another operator."""
        node = self.made[name]
        if op and node.op != op:
            raise UnknownSteps
        return node

    def _cast(self, name: str, to: int) -> str:
        """What is cast to a type."""
        node = self._step(name, "Cast")
        if node.attributes["to"] != to:
            raise UnknownSteps
        return node.inputs[0]

    def _number(self, name: str) -> float:
        """A constant of one value, without axes."""
        array = self.constants[name]
        if array.shape:
            raise UnknownSteps
        return float(array)

    def _zero_type(self, node: OnnxNode) -> np.dtype[Any] | None:
        """The type of the integers that a node makes of sums."""
        zero = self.constants.get(node.inputs[ENDS[node.op]]) if len(node.inputs) > ENDS.get(node.op, len(node.inputs)) else None
        return None if zero is None else zero.dtype

    def _integers(self, name: str, as_type: int = FLOAT32) -> tuple[str, int]:
        """The integers of which a value is, Sub(Cast(integers), zero), and their zero point."""
        centred = self._step(name, "Sub")
        integers, zero = self._cast(centred.inputs[0], as_type), self._number(centred.inputs[1])
        if integers in self.held:
            self._require_zero(centred, zero, integers)
        elif not (zero.is_integer() and self.format.low <= zero <= self.format.high):
            raise UnknownSteps
        return integers, int(zero)

    def _require_zero(self, node: OnnxNode, zero: float, integers: str) -> None:
        """What a node takes off integers is their zero point. Raises `ProgramError` E1001."""
        if zero != self.held[integers].zero_point:
            raise changed(f"{node.title}: the zero point {zero:g}, of integers that have {described(self.held[integers])}")

    def _require_end(self, end: OnnxNode) -> None:
        """What makes the integers of the layer has their zero point, and no scale where the multiplier is written out; weights have no zero
        points. Raises `UnknownSteps`, and `ProgramError` E1001 for another number."""
        if self._zero_type(end) != self.format.numpy:
            raise UnknownSteps
        zero = self._number(end.inputs[ENDS[end.op]])
        if zero != self.own.zero_point:
            raise changed(f"{end.title}: it makes integers with the zero point {zero:g}, which have {described(self.own)}")
        if end.op == "QuantizeLinear" and (scale := self._number(end.inputs[1])) != 1:
            raise changed(f"{end.title}: its scale is {scale:g}, and 1 behind a product with the multiplier")
        if end.op != "QuantizeLinear" and (zeros := self.constants[end.inputs[5]]).any():
            raise changed(f"{end.title}: its weights have the zero points {shortened(zeros.reshape(-1).tolist())}, and tpucc's have 0")

    def _sums_of_image(self, name: str) -> str:
        """The integers of which each channel is added up: ReduceSum over height and width, int32. Raises as `_integers`."""
        total = self._step(self._cast(name, FLOAT32), "ReduceSum")
        centred, axes = total.inputs
        if (found := self.constants[axes].tolist()) != IMAGE_AXES:
            raise changed(f"{total.title}: its axes are {shortened(found)}, and those of an image's pixels {IMAGE_AXES}")
        if total.attributes.get("keepdims", 1) != 1:
            raise UnknownSteps
        return self._integers(centred, INT32)[0]

    def _sums_of_windows(self, node: OnnxNode) -> tuple[str, dict[str, Any]]:
        """The integers of which windows are added up, channel by channel, and these windows: a Conv with ones. Raises as `_integers`."""
        centred, ones = node.inputs
        kernel, windows = self.constants[ones], {name: node.attributes[name] for name in WINDOWS}
        if node.attributes != {**windows, "group": len(kernel)} or kernel.shape != (len(kernel), 1, *windows["kernel_shape"]):
            raise UnknownSteps
        if math.prod(kernel.shape[2:]) * (self.format.high - self.format.low) >= EXACT:  # these have no such form
            raise UnknownSteps
        if (kernel != 1).any():
            raise changed(f"{node.title}: it adds up the pixels of windows, and its kernel has {other_than(1, kernel)}")
        return self._integers(centred)[0], windows


def described(how: Quantisation) -> str:
    """How integers are held, in a message."""
    return f"the scale {how.scale:g} and the zero point {how.zero_point}"


def other_than(usual: float, array: AnyArray) -> str:
    """The first number that isn't the usual one, in a message."""
    return f"the number {float(array[array != usual][0]):g} and not {usual:g}"
