"""A random network on its way to source text: the lines so far, every value with its shape, and what is still affordable.

Shapes are worked out here, by hand, and not by tpucc's rules: a program's declared result types then hold the front end to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

T = TypeVar("T")
Pair = tuple[int, int]
Shape = tuple[int, ...]

DEFS = {
    "dense": """
def dense(x, units, name):
    weight k: f32[x.shape[-1], units] = "{name}.kernel"
    weight b: f32[units] = "{name}.bias"
    return x @ k + b
""",
    "conv_bn": """
def conv_bn(x, filters, stride, name, size=3):
    weight k: f32[size, size, x.shape[3], filters] = "{name}.kernel"
    weight gamma: f32[filters] = "{name}.gamma"
    weight beta: f32[filters] = "{name}.beta"
    weight mean: f32[filters] = "{name}.mean"
    weight variance: f32[filters] = "{name}.variance"
    return batch_norm(conv2d(x, k, stride=stride, padding="same"), gamma, beta, mean, variance)
""",
    "block": """
def block(x, filters, stride, name, last=True):
    h = relu(conv_bn(x, filters, stride, "{name}.a"))
    h = conv_bn(h, filters, 1, "{name}.b", size=1)
    if stride != 1 or x.shape[3] != filters:
        x = conv_bn(x, filters, stride, "{name}.shortcut", size=1)
    if last:
        return relu(h + x)
    return x + h
""",
    "excite": """
def excite(x, units, name):
    squeezed = relu(dense(global_avg_pool(x), units, "{name}.down"))
    gate = sigmoid(dense(squeezed, x.shape[3], "{name}.up"))
    return x * reshape(gate, (x.shape[0], 1, 1, x.shape[3]))
""",
    "highway": """
def highway(x, name):
    gate = sigmoid(dense(x, x.shape[-1], "{name}.gate"))
    return gate * relu(dense(x, x.shape[-1], "{name}.value")) + (1.0 - gate) * x
""",
    "lstm": """
def lstm(x, h, c, name):
    units = h.shape[-1]
    weight k: f32[x.shape[-1], 4 * units] = "{name}.kernel"
    weight r: f32[units, 4 * units] = "{name}.recurrent"
    weight b: f32[4 * units] = "{name}.bias"
    z = x @ k + h @ r + b
    i = sigmoid(z[:, 0:units])
    f = sigmoid(z[:, units:2 * units])
    g = tanh(z[:, 2 * units:3 * units])
    o = sigmoid(z[:, 3 * units:])
    c = f * c + i * g
    return o * tanh(c), c
""",
    "late_lstm": """
def late_lstm(x, h, c, name):
    units = h.shape[-1]
    gates = sigmoid(dense(concat([x, h]), 3 * units, "{name}.gates"))
    c = gates[:, :units] * c + gates[:, units:2 * units] * tanh(dense(x, units, "{name}.new"))
    return gates[:, 2 * units:] * tanh(c), c
""",
    "gru": """
def gru(x, h, name):
    units = h.shape[-1]
    z = sigmoid(dense(x, units, "{name}.zx") + dense(h, units, "{name}.zh"))
    r = sigmoid(dense(x, units, "{name}.rx") + dense(h, units, "{name}.rh"))
    n = tanh(dense(x, units, "{name}.nx") + r * dense(h, units, "{name}.nh"))
    return (1.0 - z) * n + z * h
""",
    "rnn": """
def rnn(x, h, name):
    weight r: f32[h.shape[-1], h.shape[-1]] = "{name}.recurrent"
    return tanh(dense(x, h.shape[-1], "{name}") + h @ r)
""",
}
"""Functions of the language that networks call, those that call others after them."""

ACTIVATIONS = (
    "relu({})", "relu({})", "relu6({})", "sigmoid({})", "tanh({})", "leaky_relu({}, alpha=0.2)", "elu({})", "gelu({})",
    "gelu({}, approximate=True)", "silu({})", "hard_sigmoid({})", "hard_swish({})", "{}", "{}",
    "abs({})", "clip({}, -0.75, 1.5)", "maximum({}, 0.1)", "exp(clip({}, -2.0, 2.0))", "sqrt(abs({}) + 0.5)", "log(abs({}) + 0.5)",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a network may be.

    `sides` are heights and widths, `few` the ordinary numbers of channels and `many` the rare ones, `window` the largest side of a kernel,
    `steps` of a sequence; `moves` says how many there are at least and at most. No value has many more than `elements`.
    """

    batches: tuple[int, ...]
    sides: tuple[int, ...]
    few: tuple[int, ...]
    many: tuple[int, ...]
    units: tuple[int, ...]
    window: int
    steps: int
    moves: Pair
    elements: int
    macs: int


ORDINARY = Bounds(
    batches=(1, 1, 2, 3),
    sides=(1, 4, 5, 7, 8, 9, 13, 16),
    few=(1, 3, 5, 16),
    many=(255, 256, 257),
    units=(1, 3, 7, 16, 33),
    window=7,
    steps=5,
    moves=(3, 9),
    elements=40_000,
    macs=5_000_000,
)
"""For TPU v1."""
MIDDLE = Bounds(
    batches=(1, 2),
    sides=(1, 3, 4, 5, 7),
    few=(1, 3, 5, 8),
    many=(15, 16, 17),
    units=(1, 3, 5, 16, 17),
    window=7,
    steps=4,
    moves=(2, 6),
    elements=1_500,
    macs=200_000,
)
"""For a matrix unit of 16×16."""
BLACKBOARD = Bounds(
    batches=(1,),
    sides=(1, 2, 3),
    few=(1, 2, 3, 4),
    many=(5,),
    units=(1, 3, 4, 5),
    window=3,
    steps=3,
    moves=(1, 4),
    elements=40,
    macs=3_000,
)
"""For the target tiny."""
PICTURES = Bounds(
    batches=(1, 1, 2),
    sides=(4, 5, 6, 7, 9, 12),
    few=(1, 2, 3, 4),
    many=(5,),
    units=(1, 3, 4),
    window=3,
    steps=3,
    moves=(1, 5),
    elements=600,
    macs=60_000,
)
"""For the target tiny, too: half of them have maps that it holds in bands only."""


class Draft:
    """Draws, writes lines and keeps account. `value` is the name of the current value, which the next move goes on with."""

    def __init__(self, seed: int, bounds: Bounds = ORDINARY) -> None:
        self.seed = seed
        self.bounds = bounds
        self.random = np.random.default_rng(seed)
        self.batch = self.one_of(bounds.batches)
        self.shapes: dict[str, Shape] = {}
        self.value = ""
        self.lines: list[str] = []
        self.macs = 0
        self.used: set[str] = set()
        self._names = 0

    # draws

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high, endpoint=True))

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def one_of(self, values: Sequence[T]) -> T:
        return values[int(self.random.integers(len(values)))]

    def channels(self, macs_each: int = 0, elements_each: int = 0) -> int:
        """A number of channels that is affordable at so many multiply-accumulates and elements each; one if none is."""
        wanted = self.bounds.many if self.chance(0.12) else self.bounds.few
        fitting = [n for n in (*wanted, *self.bounds.few) if self.affords(n * macs_each, n * elements_each)]
        return self.one_of(fitting or (1,))

    def units(self, macs_each: int) -> int:
        """A width of a dense layer or a state."""
        return self.one_of([n for n in self.bounds.units if self.affords(n * macs_each)] or (1,))

    # account

    @property
    def shape(self) -> Shape:
        return self.shapes[self.value]

    def affords(self, macs: int, elements: int = 0) -> bool:
        return self.macs + macs <= self.bounds.macs and elements <= self.bounds.elements

    def partners(self, shape: Shape) -> list[str]:
        """The values of this shape so far."""
        return [name for name, known in self.shapes.items() if known == shape]

    # text

    def name(self, stem: str = "h") -> str:
        """A name that nothing has yet."""
        self._names += 1
        return f"{stem}{self._names}"

    def let(self, expression: str, shape: Shape, macs: int = 0) -> str:
        """A line that computes a new value, which becomes the current one."""
        name = self.name()
        self.lines.append(f"{name} = {expression}")
        return self.keep(name, shape, macs)

    def keep(self, name: str, shape: Shape, macs: int = 0) -> str:
        """Makes a value that the lines assign the current one."""
        self.shapes[name] = shape
        self.value = name
        self.macs += macs
        return name

    def weight(self, *shape: int) -> str:
        """A line that declares a weight; its name."""
        name = self.name("w")
        self.lines.append(f"weight {name}: f32[{sizes(shape)}]")
        return name

    def call(self, function: str, *arguments: object) -> str:
        """A call of one of `DEFS`."""
        self.used.add(function)
        return f"{function}({', '.join(map(str, arguments))})"

    def source(self, header: str, result: str) -> str:
        """The whole program."""
        defs = [DEFS[name].lstrip("\n") for name in DEFS if name in _called(self.used)]
        model = "\n".join([header, *(f"    {line}" for line in self.lines), result, ""])
        return "\n".join([f"param batch = {self.batch}\nweights random(seed={self.seed})\n", *defs, model])


def sizes(shape: Iterable[int]) -> str:
    return ", ".join(map(str, shape))


def _called(used: set[str]) -> set[str]:
    """The functions used, and those that they call."""
    found = set(used)
    for name in reversed(DEFS):
        if name in found:
            found |= DEFS.keys() & set(re.findall(r"(\w+)\(", DEFS[name]))
    return found


def activated(draft: Draft, value: str) -> str:
    """The value through one of `ACTIVATIONS`, or as it is."""
    return draft.one_of(ACTIVATIONS).format(value)
