"""The network that is built while a model is read: nodes of tpucc's operators, constants, and values in the axes that operators need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin, counted, listed
from tpucc.interop.onnx.reading.building.values import (
    Axes,
    Grid,
    Kind,
    Static,
    Tensor,
    V,
    Value,
    axes_of,
    broadcast,
    is_same,
    order_of,
    order_of_result,
    plain,
    ranked,
    refined,
    repeated_axes,
    size_in_memory,
    split_axes,
    without_ones,
    without_repetition,
)
from tpucc.interop.onnx.reading.building.weights import Called, Weights
from tpucc.interop.onnx.reading.files import names as keys
from tpucc.interop.onnx.reading.files.problems import COMPUTED, ELSEWHERE, Misfit, Unsupported, named
from tpucc.interop.onnx.reading.files.tensors import NO_NUMBERS
from tpucc.ir import Constant, Graph, GraphBuilder, NoAttributes, Node, TensorType, f32
from tpucc.numerics import AnyArray
from tpucc.ops import OPS, facts_of
from tpucc.ops.evaluate import MAX_BYTES
from tpucc.ops.facts import keeps_values
from tpucc.ops.opdef import RuleError

LARGEST = 3.4e38
"""Of the constants here: what is larger, as in masks, is as good as infinite, and the language has no infinite numbers."""
MAX_ELEMENTS = 2**24
"""Of the constants that are computed while a model is read, together, beside those that its own constants allow."""
NO_VALUES = "tensors without values aren't read: every size is at least 1"
COPIES = 8
"""How often the constants of a file may be computed anew while it is read."""


NAMED = 3
"""Names of which a comment says the same as of another; the others are counted."""
ROLES: Mapping[str, str] = {"add": "bias", "div": "scale", "mul": "scale", "sub": "bias"}
"""What constants are to operators of elements."""


class Network:
    """Builds the graph. `name`, `path` and `origin` are those of the file's node that is being read; new nodes get them. `single` are
    those constants of one value that are weights. `called` has which parameters known values are forms of."""

    def __init__(self, name: str, constants: Mapping[str, AnyArray], called: Called, single: Collection[str] = ()) -> None:
        self.builder = GraphBuilder(name)
        self._weights = Weights()
        self._notes: dict[str, dict[str, None]] = {}
        """What comments say, with `{}` for a name, and the names of which it is true."""
        self._room = MAX_ELEMENTS
        self.allow(constants.values())
        self.grids: dict[str, Grid] = {}
        """The scales of constants that the file has as integers."""
        self.held: dict[str, Grid] = {}
        """The nodes whose values are on a grid, also those that have values of such nodes and no others."""
        self.known: set[str] = set()
        """The nodes that compute the same for all inputs."""
        self.name = ""
        self.path = ""
        self._role = ""
        """What a constant is to the operator of elements that is being made."""
        self.origin = Origin(made_by="import")
        self._constants = constants
        self._single = single
        self.called = called
        self._arranged: dict[tuple[str, str, tuple[int, ...]], Node] = {}
        self._rounded: dict[tuple[str, Grid], Node] = {}

    def note(self, text: str, name: str = "") -> None:
        """Adds a comment; `{}` in the text stands for the name."""
        self._notes.setdefault(text, {})[named(name)] = None

    @property
    def notes(self) -> Iterator[str]:
        """The comments. One that is true of several names has the first, and a sentence with the next few."""
        for text, (first, *others) in self._notes.items():
            rest = [counted(len(others) - NAMED, "other")] if len(others) > NAMED else []
            yield text.replace("{}", first) + (f". The same is true of {listed([*others[:NAMED], *rest])}" if others else "")

    @property
    def weights(self) -> Mapping[str, AnyArray]:
        """The arrays of the weights, by key."""
        return self._weights.arrays

    # Nodes

    def add(self, op: str, *operands: Node, name: str = "", **attributes: Any) -> Node:
        """A node of an operator, its type by the operator's rule. Raises `Unsupported` where that doesn't hold."""
        operator = OPS[op]
        given = operator.attributes(**attributes)
        try:
            type_ = operator.infer(given, [operand.type for operand in operands])
        except RuleError as error:
            message, _ = error.named([operand.name for operand in operands])  # its help speaks of tpucc's language
            raise Unsupported(message, COMPUTED if any(operand.type.dtype == "i32" for operand in operands) else ELSEWHERE) from None
        return self._node(op, tuple(operand.name for operand in operands), given, type_, name)

    def input(self, name: str, type_: TensorType) -> Node:
        return self._node("input", (), OPS["input"].attributes(), OPS["input"].infer(None, [type_]), name)

    def _node(self, op: str, operands: tuple[str, ...], attributes: Any, type_: TensorType, name: str) -> Node:
        if op != "weight" and (needed := type_.size * type_.numpy.itemsize) > MAX_BYTES:  # weights have a limit of their own
            raise Unsupported(
                f"a value {list(type_.shape)} takes {needed:,} bytes, and one has at most {MAX_BYTES:,}",
                "a smaller batch, or smaller images, take less",
            )
        node = self.builder.add(Node(name or self.name or op, op, operands, attributes, type_, self.origin))
        if op != "input" and self.known.issuperset(operands):
            self.known.add(node.name)
        grids = {self.held.get(operand) for operand in operands if self.builder.nodes[operand].type.dtype != "i32"}
        if len(grids) == 1 and (grid := grids.pop()) is not None and keeps_values(facts_of(op)):
            self.held[node.name] = grid
        return node

    def graph(self) -> Graph:
        return self.builder.build()

    # Constants

    def scalar(self, number: float) -> Node:
        return self.add("constant", name="scalar", value=Constant(self._finite(np.array(number))))

    def given(self, array: AnyArray, name: str) -> Node:
        """A known value as a node of f32: a number, a `full`, or a weight whose key is `name`."""
        if array.size == 0:
            raise Unsupported(f"the constant {named(name)} has the shape {list(array.shape)}", NO_VALUES)
        repeated = repeated_axes(array)
        small = self._finite(array[tuple(slice(0, 1) if axis in repeated else slice(None) for axis in range(array.ndim))])
        if (name in self._constants or name in self._single) and not repeated:
            return self._weight(small, name, self._role)
        if array.size == 1:
            return self.add("constant", name="scalar", value=Constant(np.array(small)))
        if small.size == 1 or (small == small.reshape(-1)[0]).all():
            return self.filled(array.shape, float(small.reshape(-1)[0]))
        weight = self._weight(small, name, self._role)
        return self.add("add", weight, self.filled(array.shape, 0.0)) if repeated else weight

    def filled(self, shape: tuple[int, ...], value: float) -> Node:
        """One value over and over."""
        return self.add("full", shape=shape, value=value, name="full") if value else self.add("zeros", shape=shape, name="zeros")

    def weight(self, array: AnyArray, name: str, role: str = "") -> Node:
        """A known value as a weight. `role` is what it is to its operator, where its key has to say so and its shape doesn't."""
        node = self._weight(self._finite(array), name, role)
        if (grid := self.grids.get(name)) is None:
            return node
        return self.on(node, grid, name=node.name)

    def parameter(self, value: Value, role: str = "") -> Node:
        """A value with the axes of the file as a weight, or as the network computes it."""
        return self.weight(value.array, value.name, role) if isinstance(value, Static) else self.arranged(value, range(value.rank))

    def matrix(self, array: AnyArray, name: str) -> Node:
        """A known value as the right operand of a product: a weight, or one that is there already, transposed, as of tied embeddings."""
        tied = None if name in self.grids else self._weights.tied(array, self.called.tied.get(name) or self.own_name(name))
        return self.weight(array, name) if tied is None else self._once("transpose", tied, (1, 0))

    def own_name(self, name: str) -> str:
        """The name of a known value, that of the constant of which it is a form; empty for one that an exporter has made up."""
        own = self.called.name(name)
        return "" if keys.ANONYMOUS.fullmatch(own) else own

    def may_have(self, array: AnyArray, name: str) -> bool:
        """Whether no other values have the key of a weight of this name."""
        return not self._weights.has_others(keys.key(name, self.path, ""), array)

    def on(self, node: Node, grid: Grid, name: str = "") -> Node:
        """The values on a grid, as one node for all their uses. Rounding values again that lie there gives the same ones: of an integer n
        of up to 16 bits, the float32 quotient of the product n · scale and the scale is less than 0.01 away from n."""
        if self.held.get(node.name) == grid:
            return node
        if grid.bits == 16 and node.name in self.known:
            self.note("Constants that the file rounds to 16 bits are computed in float32")
            return node
        if node.op == "weight":
            return self._rounding(node, grid, name)
        if (node.name, grid) not in self._rounded:
            self._rounded[node.name, grid] = self._rounding(node, grid, name)
        return self._rounded[node.name, grid]

    def _rounding(self, node: Node, grid: Grid, name: str) -> Node:
        shortest = float(str(np.float32(grid.scale)))  # the same float32, with the digits that it has
        integers = self.add("quantize", node, scale=shortest, zero_point=grid.zero_point, bits=grid.bits, name=name)
        made = self.add("dequantize", integers, name=name)
        self.held[made.name] = grid
        return made

    def _finite(self, array: AnyArray) -> AnyArray:
        self.require_room(array.size - size_in_memory(array))
        if array.dtype.kind == "O":
            raise Unsupported("a constant is of texts", NO_NUMBERS)
        with np.errstate(over="ignore"):
            values = np.asarray(array).astype(np.float32) if array.dtype != np.float32 else array
        if np.isnan(values).any():
            raise Unsupported("a constant is not a number (NaN)", "the model's weights are damaged, or it was never trained")
        if (np.abs(values) > LARGEST).any():
            if np.isinf(values).any():
                self.note(f"Infinite constants, as masks have them, are {LARGEST:g} or its negative here")
            values = np.clip(values, -LARGEST, LARGEST)
        return values

    def _weight(self, values: AnyArray, name: str, role: str) -> Node:
        if values.size == 0:
            raise Unsupported(f"the weight {named(name)} has the shape {list(values.shape)}", NO_VALUES)
        own = self.called.name(name)
        wanted = keys.key(own, self.path, role or ("weight" if values.ndim > 1 else "bias"))
        key = self._weights.key(wanted, self.called.is_part(name) and not is_same(self._constants[own], values), values)
        is_named = key in self._constants or name in self.grids
        made = self._weights.of(key) or (None if is_named else self._weights.like(values))
        if made is not None:
            return made
        attributes, type_ = OPS["weight"].attributes(key=key), TensorType("f32", values.shape)
        node = self._node("weight", (), attributes, type_, keys.identifier(wanted, "w"))
        return self._weights.put(key, node, values, own=None if name in self.grids else own, is_named=is_named)

    def tensor(self, value: Value) -> Tensor:
        """A value as a tensor, a known one as a constant."""
        return value if isinstance(value, Tensor) else plain(self.given(value.array, value.name))

    def allow(self, arrays: Iterable[AnyArray]) -> None:
        """Makes room for what may be computed from constants of the file."""
        self._room += COPIES * sum(array.size for array in arrays)

    def require_room(self, size: int) -> None:
        """Takes the room of so many values. Raises `Unsupported` when there is less: all that is computed here stays."""
        if size > self._room:
            found = f"a constant of {size:,} values is computed, and all such constants together may have {self._room:,} more"
            raise Unsupported(found, "onnxruntime's offline optimiser stores computed constants in the file")
        self._room -= size

    # Axes

    def reshaped(self, t: V, shape: Sequence[int]) -> V:
        """The value in another shape of the file; axes are joined and split without moving data, wherever that is possible."""
        if isinstance(t, Static):
            return replace(t, array=t.array.reshape(shape))
        parts, splits = split_axes(t, shape)
        if parts is None:
            whole = self._once("reshape", self.arranged(t, range(t.rank)), tuple(shape))
            return replace(t, node=whole, axes=plain(whole).axes)
        sizes = [size for pieces in splits for size in pieces]
        starts = [sum(map(len, splits[:axis])) for axis in range(len(splits))]
        node = t.node if len(sizes) == t.node.type.rank else self._once("reshape", t.node, tuple(sizes))
        return replace(t, node=node, axes=tuple(tuple(starts[axis] + piece for axis, piece in axis_parts) for axis_parts in parts))

    def arranged(self, t: Value, order: Sequence[int]) -> Node:
        """A node with one axis for each axis of the file, in this order."""
        if isinstance(t, Static):
            return self.given(t.turned(order).array, t.name)
        shape = t.shape
        wanted = [part for axis in order for part in t.axes[axis]]
        sizes = t.node.type.shape
        moving = [part for part in wanted if sizes[part] != 1]
        node = t.node
        if moving != sorted(moving):
            rest = [part for part in range(len(sizes)) if part not in wanted]
            node = self._once("transpose", node, (*wanted, *rest))
        target = tuple(shape[axis] for axis in order)
        return node if node.type.shape == target else self._once("reshape", node, target)

    def laid(self, t: Tensor, order: Sequence[int]) -> Tensor:
        """The tensor on a node as `arranged` makes it."""
        return Tensor(self.arranged(t, order), axes_of(order), t.kind)

    def plain(self, t: Tensor) -> Tensor:
        """The tensor with the axes of the file, in its order."""
        return self.laid(t, range(t.rank))

    def single(self, t: Tensor) -> Tensor:
        """The tensor with one axis of its node for each axis of the file; nothing moves where that is possible."""
        if all(len(axis) == 1 for axis in t.axes) and t.node.type.rank == t.rank:
            return t
        return self.laid(t, order_of(t))

    def unsplit(self, t: Tensor) -> Tensor:
        """The tensor on the node of which its own is a reshape, where that has the axes of the file, as of the two directions of a
        recurrence side by side."""
        is_split = t.node.op == "reshape" and list(t.order) == sorted(t.order)
        return self.plain(t) if is_split and self.builder.nodes[t.node.operands[0]].type.shape == t.shape else t

    def in_shape(self, node: Node, shape: tuple[int, ...]) -> Node:
        """A node in another shape."""
        return node if node.type.shape == shape else self._once("reshape", node, shape)

    def _once(self, op: str, node: Node, numbers: tuple[int, ...]) -> Node:
        """A reshape or a transpose, one for all its uses."""
        if op == "reshape" and node.op == "reshape":
            node = self.builder.nodes[node.operands[0]]
            if node.type.shape == numbers:
                return node
        key = (op, node.name, numbers)
        if key not in self._arranged:
            attributes = {"shape": numbers} if op == "reshape" else {"perm": numbers}
            self._arranged[key] = self.add(op, node, name=node.name if node.op == "weight" else op, **attributes)
        return self._arranged[key]

    # Functions of elements

    def elementwise(self, op: str, *values: Value, kind: Kind = "float", **attributes: Any) -> Tensor:
        """An operator of elements on values that broadcast, in the axes of the largest tensor among them. A scale goes before a reshape,
        where the product is that it folds into."""
        self._role = ROLES.get(op, "")
        nodes, axes = self.together(values)
        self._role = ""
        view = next((node for node in nodes if node.op == "reshape"), None)
        if op != "mul" or view is None or any(node is not view and node.type.rank for node in nodes):
            return Tensor(self.add(op, *nodes, **attributes), axes, kind)
        x = self.builder.nodes[view.operands[0]]
        scaled = self.add(op, *(x if node is view else node for node in nodes))
        return Tensor(self._once("reshape", scaled, view.type.shape), axes, kind)

    def together(self, values: Sequence[Value]) -> tuple[list[Node], Axes]:
        """Nodes that broadcast as the values do, and the axes of the result. Raises `Misfit` for shapes that don't."""
        if (shape := broadcast([value.shape for value in values])) is None:
            raise Misfit
        tensors = [ranked(value, len(shape)) for value in values if isinstance(value, Tensor)]
        fitting = [t for t in tensors if t.shape == shape]
        if not fitting:
            order = order_of_result(max(tensors, key=lambda t: t.size), shape) if tensors else tuple(range(len(shape)))
            wanted = Node("", "", (), NoAttributes(), f32(*(shape[axis] for axis in order)), self.origin)
            main = Tensor(wanted, axes_of(order))
        else:
            main = next((t for t in fitting if t in values), fitting[0])
            values = [self._unrepeated(value) for value in values]
        return [self._like(value, main) for value in values], main.axes

    def _unrepeated(self, value: Value) -> Value:
        """A value that has been computed without the places along which it repeats."""
        if isinstance(value, Tensor) or value.name in self._constants:
            return value
        return replace(value, array=without_repetition(value.array))

    def _like(self, value: Value, main: Tensor) -> Node:
        """A value as a node that broadcasts to that of `main`."""
        if isinstance(value, Static) and self.is_number(value):
            return self.scalar(float(value.array.reshape(())))
        if isinstance(value, Tensor) and value.axes == main.axes and value.node.type.shape == main.node.type.shape:
            return value.node
        shape, rank = (*(1,) * (main.rank - value.rank), *value.shape), main.node.type.rank
        parts = (*main.order, *(part for part in range(rank) if part not in main.order))
        sizes = [size for axis in range(main.rank) for size in refined(shape[axis], main.atoms(axis))]
        split, order = self.reshaped(value, [*sizes, *(1 for _ in parts[len(sizes) :])]), [parts.index(part) for part in range(rank)]
        return self._held(without_ones(split.turned(order).array), split.name) if isinstance(split, Static) else self.arranged(split, order)

    def is_number(self, value: Static) -> bool:
        """Whether a known value is a number of the source, and no weight of one value."""
        return value.array.size == 1 and value.name not in self._single

    def _held(self, array: AnyArray, name: str) -> Node:
        """A known value beside others as a node, on the grid of the integers that it has in the file."""
        if name in self._single and np.ndim(self._constants.get(name, array)) == 0:
            array = array.reshape(())  # a weight of one value without axes in the file has none here
        node = self.given(array, name)
        grid = self.grids.get(name) if node.op == "weight" else None
        return node if grid is None else self.on(node, grid, name=node.name)

    def map(self, t: Tensor, op: str, **attributes: Any) -> Tensor:
        """A function of each element."""
        return Tensor(self.add(op, t.node, **attributes), t.axes, t.kind)

    def affine(self, t: Tensor, factor: float, term: float = 0.0) -> Tensor:
        """factor · t + term."""
        node = t.node if factor == 1 else self.add("mul", t.node, self.scalar(factor))
        return Tensor(node if term == 0 else self.add("add", node, self.scalar(term)), t.axes, t.kind)

    def apply(self, t: Tensor, function: Callable[[Node], Node]) -> Tensor:
        """A function of each element that is made of several nodes."""
        return Tensor(function(t.node), t.axes, t.kind)
