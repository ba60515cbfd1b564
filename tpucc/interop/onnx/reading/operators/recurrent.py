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
from tpucc.interop.onnx.reading.files.names import module_of
from tpucc.interop.onnx.reading.files.problems import Unsupported, named, require
from tpucc.interop.onnx.reading.operators.places import part
from tpucc.interop.onnx.reading.operators.rows import ROWS, Floats, Positive, Row, Texts, operator
from tpucc.ir import Node
from tpucc.numerics import AnyArray

Direction = Literal["forward", "reverse", "bidirectional"]
State = tuple[Node, ...]
Arrays = tuple[Any, ...]
MOST_STEPS = 2_000
LSTM_ORDER = (0, 2, 3, 1)
"""ONNX's gates are input, output, forget, cell; Keras's and ours input, forget, cell, output."""


@dataclass(frozen=True)
class GateFunction:
    """A function in the gates: the operator of the same name, with the values that the node gives to its attributes alpha and beta."""

    call: Call
    row: Row
    numbers: Mapping[str, float]

    def of(self, x: Node, name: str) -> Node:
        """The function's result; `name` is that of its node."""
        own, self.call.net.name = self.call.net.name, name or self.row.op.lower()
        made = as_tensor(self.row.result(self.call, plain(x), **self.numbers))
        self.call.net.name = own
        return made.node


def gate_functions(c: Call, said: CellAttributes, defaults: Sequence[str], directions: int) -> list[list[GateFunction]]:
    """The functions of each direction. Those that have numbers take them from the node's lists, in their order, as far as these go."""
    names, numbers = (
        said.activations or [*defaults] * directions,
        {"alpha": iter(said.activation_alpha), "beta": iter(said.activation_beta)},
    )
    require(len(names) >= len(defaults) * directions)
    found: list[GateFunction] = []
    for name in names:
        row = next((row for row in ROWS.values() if row.op.lower() == name.lower()), None)
        if row is None or len(row.operands) != 1 or not row.attributes.keys() <= numbers.keys():
            raise Unsupported(
                f"the function {named(name)}", "functions of one value that are operators of ONNX are read, as Sigmoid and Tanh"
            )
        found.append(GateFunction(c, row, {key: next(numbers[key], each.default) for key, each in row.attributes.items()}))
    return [found[start : start + len(defaults)] for start in range(0, len(defaults) * directions, len(defaults))]


@dataclass(frozen=True)
class Cell:
    """A recurrent network in one direction: its weights [inputs, gates], [units, gates] and biases [gates], of which there may be two.

    Nodes that are to be variables in the source are named as such, others after their operators.
    """

    network: Network
    units: int
    kernel: Node
    recurrent: Node
    bias: Node | None
    recurrent_bias: Node | None
    activations: Sequence[GateFunction]
    reset_after: bool
    peepholes: Sequence[Node] = ()
    """Of the gates input, output and forget: the share of the cell's state in each."""

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
        return self.activations[index].of(x, name)


FUNCTIONS: Mapping[int, Sequence[str]] = {4: ("Sigmoid", "Tanh", "Tanh"), 3: ("Sigmoid", "Tanh"), 1: ("Tanh",)}
"""The functions of a network of so many gates that names none."""


def _lstm(cell: Cell, x: Node, state: State) -> State:
    h, c = state
    z = cell.sum(cell.product(x, cell.kernel), cell.product(h, cell.recurrent), cell.bias, name="z")
    i, f, g, o = (cell.gate(z, index) for index in range(4))
    if cell.peepholes:
        i, f = (cell.sum(gate, cell.times(c, cell.peepholes[index])) for gate, index in ((i, 0), (f, 2)))
    i, f, g = cell.activation(0, i, "i"), cell.activation(0, f, "f"), cell.activation(1, g, "g")
    c = cell.sum(cell.times(f, c), cell.times(i, g), name="c")
    if cell.peepholes:
        o = cell.sum(o, cell.times(c, cell.peepholes[1]))
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


@dataclass(frozen=True)
class Sequences:
    """A recurrent operator of a node: its kind by the number of its gates, its operands, and the attributes that all three operators have.
    `states` are the first ones, None where none is given."""

    gates: int
    step: Callable[[Cell, Node, State], State]
    x: Tensor
    w: AnyArray
    r: AnyArray
    bias: AnyArray | None
    states: Sequence[Value | None]
    direction: Direction
    layout: bool
    functions: Sequence[Sequence[GateFunction]]
    peepholes: AnyArray | None = None
    reset_after: bool = False

    @property
    def units(self) -> int:
        return int(self.r.shape[-1])

    def result(self, c: Call) -> Result:
        """The results of all steps, and the last states."""
        net = c.net
        x = Tensor(self.x.node, (self.x.axes[1], self.x.axes[0], self.x.axes[2])) if self.layout else self.x
        time, batch, _ = x.shape
        x = net.single(x)
        own, net.name = net.name, "slice"
        outputs: list[list[Node]] = []
        finals: list[State] = []
        for direction, functions in enumerate(self.functions):
            cell = self._cell(c, direction, functions)
            state = tuple(self._initial(c, value, name, direction, batch) for name, value in zip("hc", self.states, strict=False))
            found: dict[int, Node] = {}
            for t in reversed(range(time)) if self._goes_back(direction) else range(time):
                at = net.arranged(part(net, x, {0: range(t, t + 1)}, [0]), (0, 1))
                state = self.step(cell, at, state)
                found[t] = state[0]
            outputs.append([found[t] for t in range(time)])
            finals.append(state)
        net.name = own
        made = [_sequence(net, outputs, self.layout)] if c.node.outputs[0] and c.reads(0) else [Static(np.zeros(0), "")]
        return (*made, *(_final(net, [state[index] for state in finals], self.layout) for index in range(len(self.states))))

    def _goes_back(self, direction: int) -> bool:
        return direction == 1 or self.direction == "reverse"

    def _columns(self, array: AnyArray) -> AnyArray:
        """Rows of gates as columns, in the order of the language."""
        parts = np.split(array, self.gates)
        return np.concatenate([parts[gate] for gate in (LSTM_ORDER if self.gates == 4 else range(self.gates))]).T

    def _cell(self, c: Call, direction: int, functions: Sequence[GateFunction]) -> Cell:
        bias = None if self.bias is None else self.bias[direction].astype(np.float32)
        own, back = (self._columns(part) for part in np.split(bias, 2)) if bias is not None else (None, None)
        if own is not None and back is not None and not self.reset_after:
            own, back = own + back, None
        shares = self.peepholes
        peepholes = np.split(shares[direction], 3) if shares is not None and shares.any() else []
        arrays = {"kernel": self._columns(self.w[direction]), "recurrent": self._columns(self.r[direction]), "bias": own}
        arrays |= {"recurrent_bias": back} | {f"peephole_{gate}": array for gate, array in zip("iof", peepholes, strict=False)}
        keyed = {name: array for name, array in arrays.items() if array is not None}
        start = _start(c.net, module_of(c.node), ".reverse" if self._goes_back(direction) else "", keyed)
        weights = {name: c.net.weight(array, f"{start}.{name}") for name, array in keyed.items()}
        held = [weights[f"peephole_{gate}"] for gate, _ in zip("iof", peepholes, strict=False)]
        biases = weights.get("bias"), weights.get("recurrent_bias")
        return Cell(c.net, self.units, weights["kernel"], weights["recurrent"], *biases, functions, self.reset_after, held)

    def _initial(self, c: Call, value: Value | None, name: str, direction: int, batch: int) -> Node:
        """The state before the first step, [batch, units]: zeros where none is given."""
        net = c.net
        if value is None or (isinstance(value, Static) and not value.array.any()):
            return net.add("zeros", shape=(batch, self.units), name=name)
        if self.layout:
            raise Unsupported("initial states with the batch first", "export it with layout=0, whose axes are steps, batch and features")
        if isinstance(value, Static) and not net.own_name(value.name):
            net.called.names[value.name] = f"{module_of(c.node)}.{name}0"
        t = net.tensor(value)
        return net.arranged(part(net, t, {0: range(direction, direction + 1)}, [0]), (0, 1))


def _start(net: Network, module: str, direction: str, arrays: Mapping[str, AnyArray]) -> str:
    """What a cell's keys begin with: its module, with a number from the module's second layer on, and its direction."""
    starts = (f"{module}.{number}{direction}" if number else f"{module}{direction}" for number in count())
    return next(start for start in starts if all(net.may_have(array, f"{start}.{name}") for name, array in arrays.items()))


def _sequence(net: Network, outputs: Sequence[Sequence[Node]], layout: bool) -> Tensor:
    """All results: [time, directions, batch, units] of the file, on a node [batch, time, directions · units]."""
    batch, units = outputs[0][0].type.shape
    time, directions = len(outputs[0]), len(outputs)
    lines = []
    for nodes in outputs:
        steps = [net.add("reshape", node, shape=(batch, 1, units)) for node in nodes]
        lines.append(steps[0] if time == 1 else net.add("concat", *steps, axis=1))
    if directions == 1:
        return Tensor(lines[0], ((0,), (1,), (), (2,)) if layout else ((1,), (), (0,), (2,)))
    split = net.add("reshape", net.add("concat", *lines), shape=(batch, time, directions, units))
    return Tensor(split, ((0,), (1,), (2,), (3,)) if layout else ((1,), (2,), (0,), (3,)))


def _final(net: Network, states: Sequence[Node], layout: bool) -> Tensor:
    """The last states: [directions, batch, units]."""
    batch, units = states[0].type.shape
    if len(states) == 1:
        return Tensor(states[0], ((0,), (), (1,)) if layout else ((), (0,), (1,)))
    split = net.add("reshape", net.add("concat", *states), shape=(batch, len(states), units))
    return Tensor(split, ((0,), (1,), (2,)) if layout else ((1,), (0,), (2,)))


def _require_shapes(s: Sequences, hidden_size: int | None) -> None:
    """Raises `Misfit` for weights and states that aren't those of the units."""
    directions = len(s.functions)
    require(s.x.rank == s.r.ndim == 3)
    units = s.r.shape[2] if hidden_size is None else hidden_size
    wanted = (directions, s.gates * units, units)
    _, batch = s.x.shape[1::-1] if s.layout else s.x.shape[:2]
    first = (batch, directions, units) if s.layout else (directions, batch, units)
    require(s.r.shape == wanted and s.w.shape == (*wanted[:2], s.x.shape[2]))
    require(s.bias is None or s.bias.shape == (directions, 2 * s.gates * units))
    require(all(state is None or state.shape == first for state in s.states))


def _sequences(
    c: Call, step: Callable[[Cell, Node, State], State], gates: int, arrays: Arrays, lengths: AnyArray | None, said: CellAttributes
) -> Sequences:
    """A recurrent operator with its operands: x, both weights, the bias and the first states. Raises `Misfit` for weights that
    aren't those of its units, and `Unsupported` for what has no counterpart: sequences of several lengths, clipped cells."""
    x, w, r, bias, *states = arrays
    directions = 2 if said.direction == "bidirectional" else 1
    functions = gate_functions(c, said, FUNCTIONS[gates], directions)
    found = Sequences(gates, step, x, w, r, bias, states, said.direction, said.layout, functions)
    _require_shapes(found, said.hidden_size)
    time = x.shape[1 if said.layout else 0]
    if lengths is not None and not (lengths == time).all():
        raise Unsupported("sequences of several lengths", "tpucc computes all steps: pad the sequences, and leave sequence_lens out")
    if said.clip is not None:
        raise Unsupported("clipped cells, or coupled gates", "export it without clip and input_forget")
    if time > MOST_STEPS:
        raise Unsupported(f"{time:,} steps; the limit is {MOST_STEPS:,}", "shorter sequences have fewer steps")
    return found


@operator("LSTM")
def lstm(
    c: Call,
    x: Tensor,
    w: AnyArray,
    r: AnyArray,
    bias: AnyArray | None,
    lengths: AnyArray | None,
    hidden: Value | None,
    cell: Value | None,
    peepholes: AnyArray | None,
    *,
    input_forget: bool = False,
    said: CellAttributes,
) -> Result:
    said = replace(said, clip=0.0) if input_forget else said
    return replace(_sequences(c, _lstm, 4, (x, w, r, bias, hidden, cell), lengths, said), peepholes=peepholes).result(c)


@operator("GRU")
def gru(
    c: Call,
    x: Tensor,
    w: AnyArray,
    r: AnyArray,
    bias: AnyArray | None,
    lengths: AnyArray | None,
    hidden: Value | None,
    *,
    linear_before_reset: bool = False,
    said: CellAttributes,
) -> Result:
    return replace(_sequences(c, _gru, 3, (x, w, r, bias, hidden), lengths, said), reset_after=linear_before_reset).result(c)


@operator("RNN")
def rnn(
    c: Call,
    x: Tensor,
    w: AnyArray,
    r: AnyArray,
    bias: AnyArray | None,
    lengths: AnyArray | None,
    hidden: Value | None,
    *,
    said: CellAttributes,
) -> Result:
    return _sequences(c, _rnn, 1, (x, w, r, bias, hidden), lengths, said).result(c)
