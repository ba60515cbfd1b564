"""LSTM, GRU and RNN, unrolled: a step is a few products and functions, and the same weights serve all steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, as_tensor
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value, plain
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.names import module_of
from tpucc.interop.onnx.reading.files.problems import Unsupported, named, require
from tpucc.interop.onnx.reading.operators.places import part
from tpucc.interop.onnx.reading.operators.rows import ROWS, Floats, Positive, Texts, operator
from tpucc.ir import Node
from tpucc.numerics import AnyArray

Direction = Literal["forward", "reverse", "bidirectional"]
State = tuple[Node, ...]
Arrays = tuple[Any, ...]
MOST_STEPS = 2_000
LSTM_ORDER = (0, 2, 3, 1)
"""ONNX's gates are input, output, forget, cell; Keras's and ours input, forget, cell, output."""


def gate_functions(said: CellAttributes, defaults: Sequence[str], directions: int) -> list[list[OnnxNode]]:
    """The functions of each direction, as nodes of the operators of the same names. Those that have numbers take them from the lists of
    what is said, in their order, as far as these go."""
    names, numbers = (
        said.activations or [*defaults] * directions,
        {"alpha": iter(said.activation_alpha), "beta": iter(said.activation_beta)},
    )
    require(len(names) >= len(defaults) * directions)
    found: list[OnnxNode] = []
    for name in names:
        row = next((row for row in ROWS.values() if row.op.lower() == name.lower()), None)
        if row is None or len(row.operands) != 1 or not row.attributes.keys() <= numbers.keys():
            raise Unsupported(
                f"the function {named(name)}", "functions of one value that are operators of ONNX are read, as Sigmoid and Tanh"
            )
        found.append(OnnxNode(row.op, ("x",), ("y",), {key: next(numbers[key], each.default) for key, each in row.attributes.items()}))
    return [found[start : start + len(defaults)] for start in range(0, len(defaults) * directions, len(defaults))]


@dataclass(frozen=True)
class Cell:
    """A recurrent network in one direction: its weights [inputs, gates], [units, gates] and biases [gates], of which there may be two.

    Nodes that are to be variables in the source are named as such, others after their operators.
    """

    call: Call
    units: int
    kernel: Node
    recurrent: Node
    bias: Node | None
    recurrent_bias: Node | None
    activations: Sequence[OnnxNode]
    reset_after: bool

    @property
    def network(self) -> Network:
        return self.call.net

    def gate(self, z: Node, index: int, count: int = 1) -> Node:
        """The columns of some gates."""
        ranges = [*((0, size) for size in z.type.shape[:-1]), (index * self.units, (index + count) * self.units)]
        return self.network.add("slice", z, starts=tuple(low for low, _ in ranges), stops=tuple(high for _, high in ranges), name="slice")

    def sum(self, *terms: Node | None, name: str = "add") -> Node:
        there = [term for term in terms if term is not None]
        made = there[0]
        for place, term in enumerate(there[1:], 2):
            made = self.network.add("add", made, term, name=name if place == len(there) else "add")
        return made

    def product(self, a: Node, b: Node) -> Node:
        return self.network.add("matmul", a, b, name="matmul")

    def times(self, a: Node, b: Node, name: str = "mul") -> Node:
        return self.network.add("mul", a, b, name=name)

    def activation(self, index: int, x: Node, name: str = "") -> Node:
        """The result of a function; `name` is that of its node."""
        node, net = self.activations[index], self.network
        own, net.name = net.name, name or node.op.lower()
        made = as_tensor(ROWS[node.op].built(replace(self.call, node=node, inputs=[plain(x)])))
        net.name = own
        return made.node


def _lstm(cell: Cell, x: Node, state: State) -> State:
    h, c = state
    z = cell.sum(cell.product(x, cell.kernel), cell.product(h, cell.recurrent), cell.bias, name="z")
    i, f, g, o = (cell.gate(z, index) for index in range(4))
    i, f, g = cell.activation(0, i, "i"), cell.activation(0, f, "f"), cell.activation(1, g, "g")
    c = cell.sum(cell.times(f, c), cell.times(i, g), name="c")
    return cell.times(cell.activation(0, o, "o"), cell.activation(2, c), "h"), c


def _gru(cell: Cell, x: Node, state: State) -> State:
    """Gates in the order update, reset, new. `reset_after` multiplies the reset gate into the product, else into its operand."""
    (h,) = state
    zx = cell.sum(cell.product(x, cell.kernel), cell.bias, name="z")
    if cell.reset_after:
        zh = cell.sum(cell.product(h, cell.recurrent), cell.recurrent_bias, name="z")
        update, reset = (
            cell.activation(0, cell.sum(cell.gate(zx, index), cell.gate(zh, index)), name) for index, name in enumerate(("update", "reset"))
        )
        new = cell.activation(1, cell.sum(cell.gate(zx, 2), cell.times(reset, cell.gate(zh, 2))), "new")
    else:
        gates, last = (cell.gate(cell.recurrent, index, count) for index, count in ((0, 2), (2, 1)))
        both = cell.activation(0, cell.sum(cell.gate(zx, 0, 2), cell.product(h, gates)))
        update, reset = (cell.gate(both, index) for index in (0, 1))
        new = cell.activation(1, cell.sum(cell.gate(zx, 2), cell.product(cell.times(reset, h), last)), "new")
    return (cell.sum(new, cell.times(update, cell.network.add("sub", h, new, name="sub")), name="h"),)


def _rnn(cell: Cell, x: Node, state: State) -> State:
    return (cell.activation(0, cell.sum(cell.product(x, cell.kernel), cell.product(state[0], cell.recurrent), cell.bias), "h"),)


@dataclass(frozen=True)
class CellAttributes:
    """What nodes say of recurrent networks, of each kind."""

    activation_alpha: Floats = ()
    activation_beta: Floats = ()
    activations: Texts = ()
    clip: float | None = None
    direction: Direction = "forward"
    hidden_size: Positive | None = None
    layout: bool = False


STEPS: Mapping[str, tuple[int, int, Callable[[Cell, Node, State], State], Sequence[str]]] = {
    "GRU": (3, 1, _gru, ("Sigmoid", "Tanh")),
    "LSTM": (4, 2, _lstm, ("Sigmoid", "Tanh", "Tanh")),
    "RNN": (1, 1, _rnn, ("Tanh",)),
}
"""How many gates and states a network has, its step, and its functions where it names none."""


@operator("GRU", ignored="linear_before_reset")
@operator("LSTM", ignored="input_forget")
@operator("RNN")
def recurrent(
    c: Call,
    x: Tensor,
    w: AnyArray,
    r: AnyArray,
    bias: AnyArray | None,
    lengths: AnyArray | None,
    hidden: Value | None,
    state: Value | None,
    peepholes: AnyArray | None,
    *,
    said: CellAttributes,
) -> Result:
    """The results of all steps, and the last states. With `layout` the batch comes first in all values. The attribute that one of the
    operators has alone is read here."""
    (gates, count, step, usual), net = STEPS[c.node.op], c.net
    directions = 2 if said.direction == "bidirectional" else 1
    functions = gate_functions(said, usual, directions)
    first = x.turned((1, 0, 2)) if said.layout else x
    states = [value.turned((1, 0, 2)) if said.layout and value is not None else value for value in (hidden, state)[:count]]
    require(x.rank == r.ndim == 3)
    time, batch, inputs = first.shape
    units = r.shape[2] if said.hidden_size is None else said.hidden_size
    require(r.shape == (directions, gates * units, units) and w.shape == (directions, gates * units, inputs))
    require(bias is None or bias.shape == (directions, 2 * gates * units))
    require(all(value is None or value.shape == (directions, batch, units) for value in states))
    if lengths is not None and not (lengths == time).all():
        raise Unsupported("sequences of several lengths", "tpucc computes all steps: pad the sequences, and leave sequence_lens out")
    if said.clip is not None or c.node.attributes.get("input_forget", 0) or (peepholes is not None and peepholes.any()):
        raise Unsupported("clipped cells, coupled gates, or peepholes", "export it without clip, input_forget and P")
    if time > MOST_STEPS:
        raise Unsupported(f"{time:,} steps; the limit is {MOST_STEPS:,}", "shorter sequences have fewer steps")
    steps = net.single(first)
    own, net.name = net.name, "slice"
    outputs: list[list[Node]] = []
    finals: list[State] = []
    for direction, of_gates in enumerate(functions):
        goes_back = direction == 1 or said.direction == "reverse"
        biases = None if bias is None else bias[direction]
        reset_after = bool(c.node.attributes.get("linear_before_reset", 0))
        cell = _cell(c, units, (w[direction], r[direction], biases), ".reverse" * goes_back, of_gates, reset_after)
        now = tuple(_initial(c, value, name, direction, (batch, units)) for name, value in zip("hc", states, strict=False))
        found: dict[int, Node] = {}
        for t in reversed(range(time)) if goes_back else range(time):
            now = step(cell, net.arranged(part(net, steps, {0: range(t, t + 1)}, [0]), (0, 1)), now)
            found[t] = now[0]
        outputs.append([found[t] for t in range(time)])
        finals.append(now)
    net.name = own
    made = [_sequence(net, outputs)] if c.node.outputs[0] and c.reads(0) else []
    last = [_final(net, [each[index] for each in finals]) for index in range(count)]
    if said.layout:
        made, last = [each.turned((2, 0, 1, 3)) for each in made], [each.turned((1, 0, 2)) for each in last]
    return *(made or (Static(np.zeros(0), ""),)), *last


def _columns(array: AnyArray, gates: int) -> AnyArray:
    """Rows of gates as columns, in the order of the language."""
    parts = np.split(array, gates)
    return np.concatenate([parts[gate] for gate in (LSTM_ORDER if gates == 4 else range(gates))]).T


def _cell(c: Call, units: int, given: Arrays, end: str, functions: Sequence[OnnxNode], reset_after: bool) -> Cell:
    """The cell of the weights, the recurrent ones and the biases of a direction, whose keys have this end."""
    w, r, bias = given
    gates = len(r) // units
    own, back = (_columns(part, gates) for part in np.split(bias.astype(np.float32), 2)) if bias is not None else (None, None)
    if own is not None and back is not None and not reset_after:
        own, back = own + back, None
    arrays = {"kernel": _columns(w, gates), "recurrent": _columns(r, gates), "bias": own, "recurrent_bias": back}
    keyed = {name: array for name, array in arrays.items() if array is not None}
    start = _start(c.net, module_of(c.node), end, keyed)
    weights = {name: c.net.weight(array, f"{start}.{name}") for name, array in keyed.items()}
    biases = weights.get("bias"), weights.get("recurrent_bias")
    return Cell(c, units, weights["kernel"], weights["recurrent"], *biases, functions, reset_after)


def _initial(c: Call, value: Value | None, name: str, direction: int, shape: tuple[int, int]) -> Node:
    """The state before the first step, [batch, units]: zeros where none is given."""
    net = c.net
    if value is None or (isinstance(value, Static) and not value.array.any()):
        return net.add("zeros", shape=shape, name=name)
    if isinstance(value, Static) and not net.own_name(value.name):
        net.called.names[value.name] = f"{module_of(c.node)}.{name}0"
    return net.arranged(part(net, net.tensor(value), {0: range(direction, direction + 1)}, [0]), (0, 1))


def _start(net: Network, module: str, direction: str, arrays: Mapping[str, AnyArray]) -> str:
    """What a cell's keys begin with: its module, with a number from the module's second layer on, and its direction."""
    starts = (f"{module}.{number}{direction}" if number else f"{module}{direction}" for number in count())
    return next(start for start in starts if all(net.may_have(array, f"{start}.{name}") for name, array in arrays.items()))


def _sequence(net: Network, outputs: Sequence[Sequence[Node]]) -> Tensor:
    """All results: [time, directions, batch, units] of the file, on a node [batch, time, directions · units]."""
    batch, units = outputs[0][0].type.shape
    time, directions = len(outputs[0]), len(outputs)
    lines = []
    for nodes in outputs:
        steps = [net.add("reshape", node, shape=(batch, 1, units)) for node in nodes]
        lines.append(steps[0] if time == 1 else net.add("concat", *steps, axis=1))
    if directions == 1:
        return Tensor(lines[0], ((1,), (), (0,), (2,)))
    split = net.add("reshape", net.add("concat", *lines), shape=(batch, time, directions, units))
    return Tensor(split, ((1,), (2,), (0,), (3,)))


def _final(net: Network, states: Sequence[Node]) -> Tensor:
    """The last states: [directions, batch, units]."""
    batch, units = states[0].type.shape
    if len(states) == 1:
        return Tensor(states[0], ((), (0,), (1,)))
    split = net.add("reshape", net.add("concat", *states), shape=(batch, len(states), units))
    return Tensor(split, ((1,), (0,), (2,)))
