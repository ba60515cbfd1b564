"""What lowering decides once for a device graph, however its batch is split: tensors, steps in order, tiles and parameter blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.diagnostics import Diagnostic, InternalError
from tpucc.ir.graph import Graph, Node
from tpucc.ir.types import TensorType
from tpucc.isa.instructions import Function
from tpucc.isa.program import LayerInfo
from tpucc.layers.kinds import Fc, Vector
from tpucc.lowering.blocking import choose_blocking
from tpucc.lowering.order import order_steps
from tpucc.lowering.pools import BlockPool, TilePool, require_room
from tpucc.lowering.tensors import FcStep, MoveStep, Step, Tensor, VectorStep, View
from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.ops.constant import ConstantAttributes
from tpucc.target import Target

FUNCTIONS = {"add": Function.ADD, "subtract": Function.SUBTRACT, "multiply": Function.MULTIPLY, "table": Function.TABLE}


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The steps of a device graph in their final order.

    `outputs` are their names, their types (those of views, where they show another shape) and their tensors. `owners` has every tensor
    that takes rows of the unified buffer, with the index of the step that computes it or, for inputs and constants, first reads it.
    `batch` is the largest number of rows of any tensor but constants.
    """

    name: str
    source: str
    target: Target
    steps: tuple[Step, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[str, TensorType, Tensor], ...]
    owners: dict[Tensor, int]
    tiles: Int8
    blocks: AnyArray
    batch: int

    def layers(self, splits: tuple[int, ...]) -> tuple[LayerInfo, ...]:
        """What the program remembers of the steps; `splits` are the rows of the batch's parts."""
        return tuple(self._layer(step, splits) for step in self.steps)

    def _layer(self, step: Step, splits: tuple[int, ...]) -> LayerInfo:
        match step:
            case FcStep():
                whole = len(splits) == 1 or step.y.rows != self.batch
                choice = choose_blocking(step.y.rows if whole else max(splits), *step.tiles.shape, self.target).choice
                macs = step.y.rows * step.weights[0] * step.weights[1]
                each = choice if whole else f"in each of {len(splits):,} parts: {choice}"
                return LayerInfo(step.name, "fc", step.origin, macs, step.weights, step.fills, each)
            case VectorStep():
                return LayerInfo(step.name, "vector", step.origin, 0, (0, 0), ())
            case MoveStep():
                return LayerInfo(step.name, "move", step.origin, 0, (0, 0), (), "an output that comes from the host as it is")


def make_plan(device: Graph, target: Target) -> Plan:
    """Reads the device graph. Raises `LimitError` E0622 when the weights don't fit weight memory."""
    reader = _Reader(device, target)
    steps = [step for node in device if (step := reader.step(node)) is not None]
    outputs = tuple((output.name, device[output.node].type, reader.tensor(output.node)) for output in device.outputs)
    read = {tensor for step in steps for tensor in step.reads}
    moved = dict.fromkeys(tensor for _, _, tensor in outputs if tensor.comes_from_host and tensor not in read)
    ordered = order_steps(steps, target.mxu) + tuple(MoveStep(t.name, device[t.name].origin, t) for t in moved)
    owners = _owners(ordered)
    inputs = tuple(reader.tensor(node.name) for node in device.inputs)
    batch = max((tensor.rows for tensor in owners if tensor.data is None), default=1)
    tiles, blocks = reader.tiles.stacked(), reader.blocks.stacked()
    require_room(target, tiles, blocks)
    return Plan(device.name, device.source, target, ordered, inputs, outputs, owners, tiles, blocks, batch)


def _owners(steps: Sequence[Step]) -> dict[Tensor, int]:
    owners: dict[Tensor, int] = {}
    for index, step in enumerate(steps):
        for tensor in (*step.reads, step.y):
            owners.setdefault(tensor, index)
    return owners


class _Reader:
    """Turns nodes into steps, one tensor for each value; views share the tensor of what they show."""

    def __init__(self, device: Graph, target: Target) -> None:
        self._device = device
        self._mxu = target.mxu
        self._tensors: dict[str, Tensor] = {}
        self._cut: dict[str, tuple[Int64, tuple[tuple[int, int, int], ...]]] = {}
        self.tiles = TilePool(target)
        self.blocks = BlockPool(target.mxu)

    def step(self, node: Node) -> Step | None:
        """The step that computes `node`; None for inputs, constants and views."""
        match node.attributes:
            case Fc():
                return self._fc(node, node.attributes)
            case Vector():
                return self._vector(node, node.attributes)
            case _:
                return None

    def tensor(self, name: str) -> Tensor:
        """The tensor that the node `name` is, or shows in another shape."""
        if name not in self._tensors:
            self._tensors[name] = self._read(self._device[name])
        return self._tensors[name]

    def _read(self, node: Node) -> Tensor:
        if node.op == "reshape":
            return self._shown(node)
        data = self._data(node.name) if node.op == "constant" else None
        return Tensor(node.name, node.type, node.op == "input", data)

    def _shown(self, node: Node) -> Tensor:
        """A view's tensor. Views of views are followed in a loop: a chain of them may be longer than the call stack."""
        shown = node
        while shown.op == "reshape":
            shown = self._device[shown.operands[0]]
        if (shown.type.rows, shown.type.columns) != (node.type.rows, node.type.columns):
            message = f"{node.name} shows {shown.type.brief} as {node.type.brief}, which moves data between rows"
            raise InternalError(Diagnostic("E0904", message))
        return self.tensor(shown.name)

    def _data(self, name: str) -> AnyArray:
        attributes = self._device[name].attributes
        assert isinstance(attributes, ConstantAttributes), f"{name} must be a constant"
        return attributes.value.data

    def _fc(self, node: Node, layer: Fc) -> FcStep:
        x, weights, bias, multiplier = node.operands[:4]
        table = self._data(node.operands[4]) if layer.table else None
        tiles, fills = self._tiles(weights)
        blocks = self.blocks.fc(layer, self._data(bias), self._data(multiplier), table)
        depth, width = self._device[weights].type.shape
        return FcStep(node.name, node.origin, self.tensor(x), self.tensor(node.name), tiles, fills, blocks, (depth, width))

    def _tiles(self, weights: str) -> tuple[Int64, tuple[tuple[int, int, int], ...]]:
        if weights not in self._cut:
            data = self._data(weights)
            tiles = self.tiles.add(weights, data)
            self._cut[weights] = tiles, _fills(tiles, data.shape, self._mxu)
        return self._cut[weights]

    def _vector(self, node: Node, layer: Vector) -> VectorStep:
        looks_up = layer.table or layer.function == "table"
        names = node.operands[:-1] if looks_up else node.operands
        block = self.blocks.vector(layer, self._data(node.operands[-1]) if looks_up else None)
        operands = tuple(self._view(name, node) for name in names)
        return VectorStep(node.name, node.origin, operands, self.tensor(node.name), FUNCTIONS[layer.function], block)

    def _view(self, name: str, user: Node) -> View:
        type_ = self._device[name].type
        return View(self.tensor(name), type_.shape[:-1], type_.columns == 1 < user.type.columns)


def _fills(tiles: Int64, shape: tuple[int, ...], mxu: int) -> tuple[tuple[int, int, int], ...]:
    """For each tile its index, and the rows and columns of it that hold weights."""
    depth, width = shape
    return tuple(
        (tile, min(mxu, depth - k * mxu), min(mxu, width - n * mxu)) for k, row in enumerate(tiles.tolist()) for n, tile in enumerate(row)
    )
