"""LSTM, GRU and RNN, unrolled: a step is a few products and functions, and the same weights serve all steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from tpucc.diagnostics import listed
from tpucc.interop.onnx.reading.building.call import Call, Result, Rule
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor
from tpucc.interop.onnx.reading.files.names import module_of
from tpucc.interop.onnx.reading.files.problems import Unsupported
from tpucc.interop.onnx.reading.rules.gate_functions import GateFunction, gate_functions
from tpucc.interop.onnx.reading.rules.places import part
from tpucc.ir.node import Node
from tpucc.numerics import AnyArray

MOST_STEPS = 2_000
LSTM_ORDER = (0, 2, 3, 1)
"""ONNX's gates are input, output, forget, cell; Keras's and ours input, forget, cell, output."""


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
        return self.activations[index].of(self.network, x, name)


FUNCTIONS: Mapping[int, Sequence[str]] = {4: ("Sigmoid", "Tanh", "Tanh"), 3: ("Sigmoid", "Tanh"), 1: ("Tanh",)}
"""The functions of a network of so many gates that names none."""
DIRECTIONS: Mapping[str, int] = {"forward": 1, "reverse": 1, "bidirectional": 2}
State = tuple[Node, ...]


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


def _recurrent(step: Callable[[Cell, Node, State], State], gates: int, states: int) -> Rule:
    def rule(c: Call) -> Result:
        x = c.tensor(0)
        layout = int(c.attribute("layout", 0))
        if layout:
            x = Tensor(x.node, (x.axes[1], x.axes[0], x.axes[2]))
        time, batch, _ = x.shape
        _require_plain(c, time)
        net = c.network
        directions = DIRECTIONS[c.attribute("direction", "forward")]
        x = net.single(x)
        own, net.name = net.name, "slice"
        functions = gate_functions(c, FUNCTIONS[gates], directions)
        outputs: list[list[Node]] = []
        finals: list[State] = []
        for direction in range(directions):
            cell = _cell(c, gates, direction, functions[direction])
            state = tuple(_initial(c, 5 + index, direction, batch, cell.units) for index in range(states))
            backwards = c.attribute("direction", "forward") == "reverse" or direction == 1
            found: dict[int, Node] = {}
            for t in reversed(range(time)) if backwards else range(time):
                at = net.arranged(part(net, x, {0: range(t, t + 1)}, [0]), (0, 1))
                state = step(cell, at, state)
                found[t] = state[0]
            outputs.append([found[t] for t in range(time)])
            finals.append(state)
        net.name = own
        made = [_sequence(net, outputs, layout)] if c.node.outputs[0] and c.reads(0) else [Static(np.zeros(0), "")]
        return (*made, *(_final(net, [state[index] for state in finals], layout) for index in range(states)))

    return rule


def _require_plain(c: Call, time: int) -> None:
    """Raises `Unsupported` for what has no counterpart: sequences of several lengths, clipped cells."""
    if (direction := c.attribute("direction", "forward")) not in DIRECTIONS:
        raise Unsupported(f"the direction {direction!r}", f"there are {listed(tuple(DIRECTIONS))}")
    if c.has(4) and not (c.array(4, "the lengths of sequences") == time).all():
        raise Unsupported("sequences of several lengths", "tpucc computes all steps: pad the sequences, and leave sequence_lens out")
    if c.attribute("clip") is not None or c.attribute("input_forget", 0):
        raise Unsupported("clipped cells, or coupled gates", "export it without clip and input_forget")
    if time > MOST_STEPS:
        raise Unsupported(f"{time:,} steps; the limit is {MOST_STEPS:,}", "shorter sequences have fewer steps")


def _cell(c: Call, gates: int, direction: int, functions: Sequence[GateFunction]) -> Cell:
    net = c.network
    w, r = (c.array(index, "the weights")[direction] for index in (1, 2))
    units = r.shape[-1]
    bias = c.array(3, "the bias")[direction].astype(np.float32) if c.has(3) else None
    order = LSTM_ORDER if gates == 4 else tuple(range(gates))

    def columns(array: AnyArray) -> AnyArray:
        parts = np.split(array, gates)
        return np.concatenate([parts[gate] for gate in order]).T

    reset_after = bool(c.attribute("linear_before_reset", 0))
    own, back = (columns(part) for part in np.split(bias, 2)) if bias is not None else (None, None)
    together = gates != 3 or not reset_after
    if own is not None and back is not None and together:
        own, back = own + back, None
    peepholes = np.split(c.array(7, "the peepholes")[direction], 3) if c.has(7) and c.array(7, "the peepholes").any() else []
    arrays = {"kernel": columns(w), "recurrent": columns(r), "bias": own, "recurrent_bias": back}
    arrays |= {f"peephole_{gate}": array for gate, array in zip("iof", peepholes, strict=False)}
    keyed = {name: array for name, array in arrays.items() if array is not None}
    reverse = bool(direction) or c.attribute("direction", "forward") == "reverse"
    start = _start(net, module_of(c.node), ".reverse" if reverse else "", keyed)
    weights = {name: net.weight(array, f"{start}.{name}") for name, array in keyed.items()}
    shares = [weights[f"peephole_{gate}"] for gate, _ in zip("iof", peepholes, strict=False)]
    biases = weights.get("bias"), weights.get("recurrent_bias")
    return Cell(net, units, weights["kernel"], weights["recurrent"], *biases, functions, reset_after, shares)


def _start(net: Network, module: str, direction: str, arrays: Mapping[str, AnyArray]) -> str:
    """What a cell's keys begin with: its module, with a number from the module's second layer on, and its direction."""
    starts = (f"{module}.{number}{direction}" if number else f"{module}{direction}" for number in count())
    return next(start for start in starts if all(net.may_have(array, f"{start}.{name}") for name, array in arrays.items()))


def _initial(c: Call, index: int, direction: int, batch: int, units: int) -> Node:
    """The state before the first step, [batch, units]: zeros where none is given."""
    net = c.network
    value = c.inputs[index] if c.has(index) else None
    name = "hc"[index - 5]
    if value is None or (isinstance(value, Static) and not value.array.any()):
        return net.add("zeros", shape=(batch, units), name=name)
    if c.attribute("layout", 0):
        raise Unsupported("initial states with the batch first", "export it with layout=0, whose axes are steps, batch and features")
    if isinstance(value, Static) and not net.own_name(value.name):
        net.called.names[value.name] = f"{module_of(c.node)}.{name}0"
    t = net.tensor(value)
    return net.arranged(part(net, t, {0: range(direction, direction + 1)}, [0]), (0, 1))


def _sequence(net: Network, outputs: Sequence[Sequence[Node]], layout: int) -> Tensor:
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


def _final(net: Network, states: Sequence[Node], layout: int) -> Tensor:
    """The last states: [directions, batch, units]."""
    batch, units = states[0].type.shape
    if len(states) == 1:
        return Tensor(states[0], ((0,), (), (1,)) if layout else ((), (0,), (1,)))
    split = net.add("reshape", net.add("concat", *states), shape=(batch, len(states), units))
    return Tensor(split, ((0,), (1,), (2,)) if layout else ((1,), (0,), (2,)))


RULES: Mapping[str, Rule] = {"GRU": _recurrent(_gru, 3, 1), "LSTM": _recurrent(_lstm, 4, 2), "RNN": _recurrent(_rnn, 1, 1)}
