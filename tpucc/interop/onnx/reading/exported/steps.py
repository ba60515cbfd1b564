"""What a quantised export writes in several nodes because ONNX has no operator for it, as one node: tables, and everything of 16 bits.

Real values are DequantizeLinear written out, where what moves values follows.

ONNX has no products, pools and padding of int16. The export writes matrix products in float64, convolutions as two over the high and the
low bytes, tables with what lies between their points (`writing/layers.py`). Each becomes the node that int8 has: `MatMulInteger`,
`ConvInteger`, `MaxPool`, `Pad`. A table becomes a node `Table` of its entries and the integers; it is no operator of ONNX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.tensors import TYPES
from tpucc.ir.dtypes import I8, I16
from tpucc.numerics import AnyArray

TABLE = "Table"
SIGNED = ".signed"
"""What follows the name of a kernel in that of its signed integers."""
BYTE = I16.table_step
HALF = BYTE // 2
FLOAT32, FLOAT64, UINT8, INT16, INT32 = (
    next(number for number, type_ in TYPES.items() if type_ == wanted) for wanted in (np.float32, np.float64, np.uint8, np.int16, np.int32)
)
"""ONNX's numbers of types."""


class _Others(Exception):
    """The node doesn't end such steps."""


def with_joined_steps(graph: OnnxGraph, forms: Mapping[str, Forms] | None = None) -> OnnxGraph:
    """The graph with one node in the place of the last of such steps, of all forms unless some are given. The others stay; nothing may read
    them any more."""
    return _Steps(graph, FORMS if forms is None else forms).joined()


class _Steps:
    def __init__(self, graph: OnnxGraph, forms: Mapping[str, Forms]) -> None:
        self.graph, self.forms = graph, forms
        self.constants, self.weights = dict(graph.constants), dict(graph.weights)
        self.made = {name: node for node in graph.nodes if not node.domain for name in node.outputs}

    def joined(self) -> OnnxGraph:
        nodes = tuple(self._joined(node) for node in self.graph.nodes)
        return replace(self.graph, nodes=nodes, constants=self.constants, weights=self.weights)

    def _joined(self, node: OnnxNode) -> OnnxNode:
        for form in self.forms.get(node.kind, ()):
            try:
                made = form(self, node)
            except (_Others, ArithmeticError, LookupError, RecursionError, TypeError, ValueError):  # other files may say anything
                continue
            return made if made.op == node.op else node.read_as(made.op, made.inputs, made.attributes)
        return node

    # products

    def product(self, node: OnnxNode) -> OnnxNode:
        """MatMul of integers as float64."""
        return replace(node, op="MatMulInteger", inputs=tuple(self._cast(name, FLOAT64) for name in node.inputs))

    def biased(self, node: OnnxNode) -> OnnxNode:
        """The bias, int32, as float64."""
        sums, bias = node.inputs
        integers = self._cast(bias, FLOAT64)
        self._require(integers in self.constants)
        return replace(node, inputs=(sums, integers))

    def convolution(self, node: OnnxNode) -> OnnxNode:
        """256 times the convolution of the high bytes plus that of the low ones; the bytes are shifted, and so are the weights."""
        above, factor = self._operands(node.inputs[0], "Mul")
        high, kernel, *shifts = self._operands(above, "ConvInteger")
        low, same, *others = self._operands(node.inputs[1], "ConvInteger")
        values = self._high_byte(self._shifted(self._cast(high, UINT8), HALF))
        self._require(self._low_byte(self._cast(low, UINT8)) == values and same == kernel and self._is(factor, BYTE))
        self._require([int(self.constants[name]) for name in (*shifts, *others)] == [HALF, HALF, 0, HALF])
        weights = f"{kernel}{SIGNED}"
        self.constants[weights] = (self.constants[kernel].astype(np.int16) - HALF).astype(I8.numpy)
        if kernel in self.weights:
            self.weights[weights] = self.weights[kernel]
        attributes = dict(self.made[above].attributes)
        self._require(self.made[node.inputs[1]].attributes == attributes)
        if self.made[values].op == "Pad":
            self._require(not self.made[values].attributes and not any(attributes["pads"]))
            values, pads, outside = self._operands(values, "Pad")
            before, after = np.split(self.constants[pads], 2)
            self._require(not before[:2].any() and not after[:2].any())
            attributes |= {"pads": [*before[2:].tolist(), *after[2:].tolist()], "outside": float(self.constants[outside])}
        return replace(node, op="ConvInteger", inputs=(self._cast(values, FLOAT32), weights), attributes=attributes)

    # tables

    def looked_up(self, node: OnnxNode) -> OnnxNode:
        """Gather of 256 entries, by the integers less the lowest."""
        table, places = node.inputs
        integers, first = self._operands(places, "Sub")
        self._require(self.constants[table].shape == (I8.table_entries,) and self.constants[table].dtype == I8.numpy)
        self._require(self._is(first, I8.low) and not node.attributes.get("axis", 0))
        return replace(node, op=TABLE, inputs=(table, self._cast(integers, INT32)), attributes={})

    def interpolated(self, node: OnnxNode) -> OnnxNode:
        """Two points, by the high byte, and a share of their difference, by the low one: see `tpucc.numerics.interpolate`."""
        self._require(node.attributes["to"] == INT16)
        first, share = self._operands(self._only(node), "Add")
        products = self._shifted(self._scaled(self._operands(share, "Floor")[0], 1 / BYTE), HALF)
        points, places = self._operands(first, "Gather")
        self._require(not self.made[first].attributes.get("axis", 0))
        step, low = self._operands(products, "Mul")
        steps, same = self._operands(step, "Gather")
        self._require(not self.made[step].attributes.get("axis", 0))
        values = self._high_byte(self._shifted(self._cast(places, INT32), -I16.low / BYTE))
        self._require(same == places and self._low_byte(low) == values)
        table = self.constants[points]
        self._require(table.shape == (I16.table_entries,) and np.array_equal(self.constants[steps], np.diff(table)))
        entries = f"{points}.integers"
        self.constants[entries] = table.astype(I16.numpy)
        return replace(node, op=TABLE, inputs=(entries, self._cast(values, FLOAT32)), attributes={})

    # real values

    def dequantised(self, node: OnnxNode) -> OnnxNode:
        """The integers less their zero point, times the scale, as `writing/by_hand.py` has it before what moves values."""
        values, zeros = self._operands(node.inputs[0], "Sub")
        zero, scale = self._cast(zeros, FLOAT32), node.inputs[1]
        self._require(self.constants[zero].dtype in (I8.numpy, I16.numpy) and self.constants[scale].dtype == np.float32)
        return replace(node, op="DequantizeLinear", inputs=(self._cast(values, FLOAT32), scale, zero), attributes={})

    # moves

    def pooled(self, node: OnnxNode) -> OnnxNode:
        """MaxPool of integers as float32."""
        pool = self.made[self._only(node)]
        self._require(pool.op == "MaxPool" and node.attributes["to"] == INT16)
        return replace(node, op="MaxPool", inputs=(self._cast(pool.inputs[0], FLOAT32),), attributes=pool.attributes)

    def surrounded(self, node: OnnxNode) -> OnnxNode:
        """Identity, and one Concat with constant rows for each axis that has some."""
        pads: dict[int, tuple[int, int]] = {}
        sides: list[AnyArray] = []
        step = node
        while step.op == "Concat":
            (place,) = (place for place, name in enumerate(step.inputs) if name not in self.constants)
            axis, rows = int(step.attributes["axis"]), [self.constants[name] for name in step.inputs if name in self.constants]
            before, after = (sum(part.shape[axis] for part in parts) for parts in (rows[:place], rows[place:]))
            self._require(axis not in pads)
            pads[axis], step = (before, after), self.made[step.inputs[place]]
            sides += rows
        self._require(step.op == "Identity" and bool(sides))
        value = sides[0].reshape(-1)[0]
        self._require(all(part.dtype == I16.numpy and (part == value).all() for part in sides))
        ends = [pads.get(axis, (0, 0)) for axis in range(sides[0].ndim)]
        name, number = f"{node.outputs[0]}.pads", f"{node.outputs[0]}.value"
        self.constants |= {name: np.array([*(low for low, _ in ends), *(high for _, high in ends)], np.int64), number: np.asarray(value)}
        return replace(node, op="Pad", inputs=(step.inputs[0], name, number), attributes={})

    # parts of steps

    def _operands(self, name: str, op: str) -> tuple[str, ...]:
        """The operands of the node of this operator that makes a value."""
        node = self.made[name]
        self._require(node.op == op)
        return node.inputs

    def _cast(self, name: str, to: int) -> str:
        """What is cast to a type."""
        (of,) = self._operands(name, "Cast")
        self._require(self.made[name].attributes["to"] == to)
        return of

    def _high_byte(self, name: str) -> str:
        """The values, integers as float32, whose high byte this is, Floor(values / 256)."""
        return self._scaled(self._operands(name, "Floor")[0], 1 / BYTE)

    def _low_byte(self, name: str) -> str:
        """The values whose low byte this is: they less 256 times the high byte."""
        values, high = self._operands(name, "Sub")
        self._require(self._high_byte(self._scaled(high, BYTE)) == values)
        return values

    def _scaled(self, name: str, factor: float) -> str:
        """What is multiplied by a number."""
        of, number = self._operands(name, "Mul")
        self._require(self._is(number, factor))
        return of

    def _shifted(self, name: str, term: float) -> str:
        """What a number is added to."""
        of, number = self._operands(name, "Add")
        self._require(self._is(number, term))
        return of

    def _is(self, name: str, number: float) -> bool:
        array = self.constants[name]
        return array.size == 1 and float(array.reshape(())) == number

    @staticmethod
    def _only(node: OnnxNode) -> str:
        (name,) = node.inputs
        return name

    @staticmethod
    def _require(holds: object) -> None:
        if not holds:
            raise _Others


Forms = tuple[Callable[[_Steps, OnnxNode], OnnxNode], ...]
REAL_VALUES: dict[str, Forms] = {"Mul": (_Steps.dequantised,)}
"""The one form that files in float32 have, too."""
FORMS: dict[str, Forms] = REAL_VALUES | {
    "Add": (_Steps.convolution, _Steps.biased),
    "Cast": (_Steps.interpolated, _Steps.pooled),
    "Concat": (_Steps.surrounded,),
    "Gather": (_Steps.looked_up,),
    "MatMul": (_Steps.product,),
}
"""The forms by the operators that end them."""
