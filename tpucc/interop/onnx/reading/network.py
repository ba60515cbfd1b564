"""The network that is built while a model is read: nodes of tpucc's operators, constants, and values in the axes that operators need."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.interop.onnx.reading import names as keys
from tpucc.interop.onnx.reading.problems import INDICES, Unsupported, named
from tpucc.interop.onnx.reading.values import Axes, Grid, Kind, Static, Tensor, Value, groups, plain
from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, GraphBuilder, Node
from tpucc.ir.types import Range, TensorType
from tpucc.numerics import AnyArray
from tpucc.ops import OPS, facts_of
from tpucc.ops.evaluate import MAX_BYTES
from tpucc.ops.facts import Values, selects
from tpucc.ops.opdef import RuleError

LARGEST = 3.4e38
"""Of the constants here: what is larger, as in masks, is as good as infinite, and the language has no infinite numbers."""
MAX_ELEMENTS = 2**24
"""Of the constants that are computed while a model is read, together, beside those that its own constants allow."""
NO_VALUES = "tensors without values aren't read: every size is at least 1"
COPIES = 8
"""How often the constants of a file may be computed anew while it is read."""


class Network:
    """Builds the graph. `name`, `path` and `origin` are those of the file's node that is being read; new nodes get them. `single` are
    those constants of one value that are weights. In a file of `ours` weights keep their shapes."""

    def __init__(self, name: str, constants: Mapping[str, AnyArray], single: Collection[str] = (), ours: bool = False) -> None:
        self.builder = GraphBuilder(name)
        self.weights: dict[str, AnyArray] = {}
        self.notes: dict[str, None] = {}
        self._room = MAX_ELEMENTS
        self.allow(constants.values())
        self.erf: dict[str, str] = {}
        """The nodes that compute the error function, and their operands."""
        self.grids: dict[str, Grid] = {}
        """The scales of constants that the file has as integers."""
        self.held: dict[str, Grid] = {}
        """The nodes whose values are on a grid, also those that have values of such nodes and no others."""
        self.known: set[str] = set()
        """The nodes that compute the same for all inputs."""
        self.name = ""
        self.path = ""
        self.origin = Origin(made_by="import")
        self._constants = constants
        self._single, self._ours = single, ours
        self._weight_nodes: dict[str, tuple[Node, AnyArray]] = {}
        self._arranged: dict[tuple[str, str, tuple[int, ...]], Node] = {}
        self._rounded: dict[tuple[str, Grid], Node] = {}
        self._contents: dict[tuple[tuple[int, ...], bytes], Node] = {}

    # Nodes

    def add(self, op: str, *operands: Node, name: str = "", **attributes: Any) -> Node:
        """A node of an operator, its type by the operator's rule. Raises `Unsupported` where that doesn't hold."""
        operator = OPS[op]
        given = operator.attributes(**attributes)
        try:
            type_ = operator.infer(given, [operand.type for operand in operands])
        except RuleError as error:
            message, help = error.named([operand.name for operand in operands])
            raise Unsupported(message, INDICES if any(operand.type.dtype == "i32" for operand in operands) else help) from None
        return self._node(op, tuple(operand.name for operand in operands), given, type_, name)

    def input(self, name: str, type_: TensorType) -> Node:
        return self._node("input", (), OPS["input"].attributes(), OPS["input"].infer(None, [type_]), name)

    def _node(self, op: str, operands: tuple[str, ...], attributes: Any, type_: TensorType, name: str) -> Node:
        if op != "weight" and (needed := type_.size * type_.numpy.itemsize) > MAX_BYTES:  # weights have a limit of their own
            raise Unsupported(f"a value {list(type_.shape)} takes {needed:,} bytes, and one has at most {MAX_BYTES:,}")
        node = self.builder.add(Node(name or self.name or op, op, operands, attributes, type_, self.origin))
        if op != "input" and self.known.issuperset(operands):
            self.known.add(node.name)
        grids = {self.held.get(operand) for operand in operands if self.builder.nodes[operand].type.dtype != "i32"}
        if len(grids) == 1 and (grid := grids.pop()) is not None and _keeps_values(op):
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
        repeated = _repeated(array)
        small = self._finite(array[tuple(slice(0, 1) if axis in repeated else slice(None) for axis in range(array.ndim))])
        if (name in self._constants or name in self._single) and not repeated:
            return self._weight(small, name)
        if array.size == 1:
            return self.add("constant", name="scalar", value=Constant(np.array(small)))
        if small.size == 1 or (small == small.reshape(-1)[0]).all():
            return self.add("full", shape=array.shape, value=float(small.reshape(-1)[0]), name="full")
        weight = self._weight(small, name)
        return self.add("add", weight, self.add("zeros", shape=array.shape)) if repeated else weight

    def weight(self, array: AnyArray, name: str) -> Node:
        """A known value as a weight."""
        node = self._weight(self._finite(array), name)
        if (grid := self.grids.get(name)) is None:
            return node
        return self.on(node, grid, name=node.name)

    def may_have(self, array: AnyArray, name: str) -> bool:
        """Whether no other values have the key of a weight of this name."""
        key = keys.key(name, self.path, "")
        with np.errstate(over="ignore"):
            return key not in self._weight_nodes or _is_same(self._weight_nodes[key][1], array.astype(np.float32))

    def on(self, node: Node, grid: Grid, name: str = "") -> Node:
        """The values on a grid, as one node for all their uses. Rounding values again that lie there gives the same ones: of an integer n
        of up to 16 bits, the float32 quotient of the product n · scale and the scale is less than 0.01 away from n."""
        if self.held.get(node.name) == grid:
            return node
        if grid.bits == 16 and node.name in self.known:
            self.notes["Constants that the file rounds to 16 bits are computed in float32"] = None
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
        self.require_room(array.size - _stored(array))
        with np.errstate(over="ignore"):
            values = np.asarray(array).astype(np.float32) if array.dtype != np.float32 else array
        if np.isnan(values).any():
            raise Unsupported("a constant is not a number (NaN)", "the model's weights are damaged, or it was never trained")
        if (np.abs(values) > LARGEST).any():
            if np.isinf(values).any():
                self.notes[f"Infinite constants, as masks have them, are {LARGEST:g} or its negative here"] = None
            values = np.clip(values, -LARGEST, LARGEST)
        return values

    def _weight(self, values: AnyArray, name: str) -> Node:
        if values.size == 0:
            raise Unsupported(f"the weight {named(name)} has the shape {list(values.shape)}", NO_VALUES)
        key, number = keys.key(name, self.path, "weight" if values.ndim > 1 else "bias"), 0
        wanted = key
        while key in self._weight_nodes:
            node, before = self._weight_nodes[key]
            if _is_same(before, values):
                return node
            number += 1
            key = f"{wanted}.{number}"
        is_own = key in self._constants or name in self.grids  # by a name that the file has
        content = None if is_own else _content(values)
        if content in self._contents:
            return self._contents[content]
        made = OPS["weight"].attributes(key=key)
        node = self._node("weight", (), made, TensorType("f32", values.shape), keys.identifier(wanted, "w"))
        self._weight_nodes[key] = node, values
        self.weights[key] = np.ascontiguousarray(values)
        if content is not None:
            self._contents[content] = node
        return node

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

    def reshaped(self, t: Tensor, shape: Sequence[int]) -> Tensor:
        """The tensor in another shape of the file; axes are joined and split without moving data, wherever that is possible."""
        parts, splits = _split(t, shape)
        if parts is None:
            whole = self._once("reshape", self.arranged(t, range(t.rank)), tuple(shape))
            return plain(whole, t.kind)
        sizes = [size for pieces in splits for size in pieces]
        starts = [sum(map(len, splits[:axis])) for axis in range(len(splits))]
        node = t.node if len(sizes) == t.node.type.rank else self._once("reshape", t.node, tuple(sizes))
        return Tensor(node, tuple(tuple(starts[axis] + piece for axis, piece in axis_parts) for axis_parts in parts), t.kind)

    def arranged(self, t: Tensor, order: Sequence[int]) -> Node:
        """A node with one axis for each axis of the file, in this order."""
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

    def _once(self, op: str, node: Node, numbers: tuple[int, ...]) -> Node:
        """A reshape or a transpose, one for all its uses."""
        if op == "reshape" and node.op == "reshape":
            node = self.builder.nodes[node.operands[0]]
            if node.type.shape == numbers:
                return node
        key = (op, node.name, numbers)
        if key not in self._arranged:
            attributes = {"shape": numbers} if op == "reshape" else {"perm": numbers}
            self._arranged[key] = self.add(op, node, name=node.name if node.op == "weight" else "", **attributes)
        return self._arranged[key]

    # Functions of elements

    def elementwise(self, op: str, *values: Value, kind: Kind = "float", **attributes: Any) -> Tensor:
        """An operator of elements on values that broadcast, in the axes of the largest tensor among them. A scale goes before a reshape,
        where the product is that it folds into."""
        nodes, axes = self.together([self._unsplit(value, values) for value in values] if self._ours else values)
        view = next((node for node in nodes if node.op == "reshape"), None)
        if op != "mul" or view is None or any(node is not view and node.type.rank for node in nodes):
            return Tensor(self.add(op, *nodes, **attributes), axes, kind)
        x = self.builder.nodes[view.operands[0]]
        scaled = self.add(op, *(x if node is view else node for node in nodes))
        return Tensor(self._once("reshape", scaled, view.type.shape), axes, kind)

    def _unsplit(self, value: Value, beside: Sequence[Value]) -> Value:
        """A tensor that a reshape has made, in its shape of the file, where a weight beside it has an axis that the node has in parts."""
        if not isinstance(value, Tensor) or list(value.order) != sorted(value.order):
            return value
        parts = {value.rank - axis for axis in range(value.rank) if len(value.axes[axis]) > 1}
        weights = [other for other in beside if isinstance(other, Static) and other.name in self._constants]
        split = any(other.array.ndim >= axis and other.shape[-axis] > 1 for other in weights for axis in parts)
        return self.plain(value) if split else value

    def together(self, values: Sequence[Value]) -> tuple[list[Node], Axes]:
        """Nodes that broadcast as the values do, and the axes of the result."""
        try:
            shape = np.broadcast_shapes(*(value.shape for value in values))
        except ValueError:
            raise Unsupported(f"shapes that don't broadcast: {', '.join(str(list(value.shape)) for value in values)}") from None
        tensors = [_ranked(value, len(shape)) for value in values if isinstance(value, Tensor)]
        main = next((t for t in tensors if t.shape == shape), None)
        if main is None:
            order = order_of(max(tensors, key=lambda t: t.size)) if tensors else tuple(range(len(shape)))
            return [self._spread(value, shape, order) for value in values], axes_of(order)
        return [self._like(value, main) for value in values], main.axes

    def _spread(self, value: Value, shape: Sequence[int], order: tuple[int, ...]) -> Node:
        if isinstance(value, Tensor):
            return self.arranged(_ranked(value, len(shape)), order)
        if self._is_number(value):
            return self.scalar(float(value.array.reshape(())))
        array = value.array.reshape((1,) * (len(shape) - value.array.ndim) + value.shape)
        return self._held(_short(array.transpose(order)), value.name)

    def _like(self, value: Value, main: Tensor) -> Node:
        """A value as a node that broadcasts to that of `main`."""
        if isinstance(value, Static):
            return self._like_static(value, main)
        t = _ranked(value, main.rank)
        if t.axes == main.axes and t.node.type.shape == main.node.type.shape:
            return t.node
        sizes = [size for axis in range(main.rank) for size in self._refined(t.shape[axis], main.atoms(axis))]
        split = self.reshaped(t, sizes)
        rank = main.node.type.rank
        missing = [part for part in range(rank) if part not in main.order]
        places = {part: index for index, part in enumerate(main.order)}
        if missing:
            split = Tensor(split.node, (*split.axes, *(() for _ in missing)), split.kind)
            places |= {part: len(main.order) + index for index, part in enumerate(missing)}
        return self.arranged(split, [places[part] for part in range(rank)])

    def _like_static(self, value: Static, main: Tensor) -> Node:
        if self._is_number(value):
            return self.scalar(float(value.array.reshape(())))
        array = value.array.reshape((1,) * (main.rank - value.array.ndim) + value.shape)
        sizes = [size for axis in range(main.rank) for size in self._refined(array.shape[axis], main.atoms(axis))]
        missing = [part for part in range(main.node.type.rank) if part not in main.order]
        split = array.reshape(*sizes, *(1 for _ in missing))
        places = {part: index for index, part in enumerate((*main.order, *missing))}
        return self._held(_short(split.transpose([places[part] for part in range(main.node.type.rank)])), value.name)

    def _is_number(self, value: Static) -> bool:
        return value.array.size == 1 and value.name not in self._single

    def _held(self, array: AnyArray, name: str) -> Node:
        """A known value as a node, on the grid of the integers that it has in the file."""
        node = self.given(array, name)
        grid = self.grids.get(name) if node.op == "weight" else None
        return node if grid is None else self.on(node, grid, name=node.name)

    @staticmethod
    def _refined(size: int, atoms: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * len(atoms) if size == 1 else atoms

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

    def ranged(self, node: Node, low: float, high: float) -> TensorType:
        return node.type.with_range(Range(low, high))


def _keeps_values(op: str) -> bool:
    """Whether an operator's result has values of its operands and no others."""
    facts = facts_of(op)
    return facts.values is Values.JOINED or selects(facts)


def axes_of(order: Sequence[int]) -> Axes:
    """The axes of a tensor whose node's axes are the file's in this order."""
    places = {axis: place for place, axis in enumerate(order)}
    return tuple((places[axis],) for axis in range(len(order)))


def order_of(t: Tensor) -> tuple[int, ...]:
    """The file's axes in the order of the node's; those without a place of their own stay behind the one before them."""
    found: dict[int, tuple[int, int]] = {}
    last = -1
    for axis in range(t.rank):
        last = min(t.axes[axis], default=last)
        found[axis] = (last, axis)
    return tuple(sorted(range(t.rank), key=lambda axis: found[axis]))


def _ranked(t: Tensor, rank: int) -> Tensor:
    """The tensor with axes of size 1 before its own."""
    return t if t.rank == rank else Tensor(t.node, (*(() for _ in range(rank - t.rank)), *t.axes), t.kind)


def _short(array: AnyArray) -> AnyArray:
    """Without the first axes of size 1, which broadcasting adds."""
    while array.ndim > 1 and array.shape[0] == 1:
        array = array[0]
    return array


def _content(values: AnyArray) -> tuple[tuple[int, ...], bytes] | None:
    """What tells matrices apart: exporters that unroll a loop write its weights for each step. None where equality may be chance: vectors,
    and one number over and over."""
    if values.ndim < 2 or (values == values.reshape(-1)[0]).all():
        return None
    return values.shape, sha256(np.ascontiguousarray(values).data).digest()


def _is_same(a: AnyArray, b: AnyArray) -> bool:
    return a is b or (a.shape == b.shape and np.array_equal(a, b))


def _stored(array: AnyArray) -> int:
    """The values that an array has in memory."""
    return math.prod(size for size, step in zip(array.shape, array.strides, strict=True) if step)


def _repeated(array: AnyArray) -> tuple[int, ...]:
    """The axes along which the values repeat, of an array that was made by broadcasting."""
    return tuple(axis for axis, (size, step) in enumerate(zip(array.shape, array.strides, strict=True)) if size > 1 and step == 0)


def _split(t: Tensor, shape: Sequence[int]) -> tuple[list[list[tuple[int, int]]] | None, list[list[int]]]:
    """How the axes of a shape are made of pieces of the node's axes: (axis, piece) for each, and the sizes of all pieces.

    None where a size isn't made of whole pieces.
    """
    sizes = t.node.type.shape
    pieces: list[list[int]] = [[] for _ in sizes]
    parts: list[list[tuple[int, int]]] = [[] for _ in shape]
    ones: list[int] = []
    for before, after in groups(t.shape, shape):
        waiting = [(part, sizes[part]) for axis in before for part in t.axes[axis]]
        ones += [part for part, size in waiting if size == 1]
        waiting = [found for found in waiting if found[1] != 1]
        for axis in after:
            if shape[axis] == 1:
                if ones:
                    parts[axis].append((ones.pop(0), 0))
                continue
            if not _fill(shape[axis], waiting, pieces, parts[axis]):
                return None, []
    return parts, [found or [size] for found, size in zip(pieces, sizes, strict=True)]


def _fill(need: int, waiting: list[tuple[int, int]], pieces: list[list[int]], parts: list[tuple[int, int]]) -> bool:
    """Takes pieces of the product `need` from those that wait."""
    while need > 1:
        part, size = waiting.pop(0)
        taken = size if need % size == 0 else need
        if size % taken:
            return False
        if taken < size:
            waiting.insert(0, (part, size // taken))
        parts.append((part, len(pieces[part])))
        pieces[part].append(taken)
        need //= taken
    return True
