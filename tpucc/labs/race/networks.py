"""Small networks, drawn with the waste of a term in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

MXU = 8
WASTES: Mapping[str, str] = {
    "again": "relu(x)",
    "one": "x * 1.0",
    "zero": "x + 0.0",
    "factors": "x * 4.0 * 0.25",
    "halves": "concat([x[:x.shape[0] // 2], x[x.shape[0] // 2:]], axis=0)",
}
"""What each waste makes of a value that has no element below zero: the same value."""
SHARED = "twice"
"""The waste that is in the network as a whole: a layer is written down twice."""
_HEAD = """\
weights random(seed={seed})

def dense(x, units, name):
    weight w: f32[x.shape[-1], units] = "{{name}}.w"
    weight b: f32[units] = "{{name}}.b"
    return x @ w + b

def conv(x, filters, name):
    weight k: f32[3, 3, x.shape[-1], filters] = "{{name}}.k"
    weight b: f32[filters] = "{{name}}.b"
    return conv2d(x, k) + b

"""


@dataclass(frozen=True, slots=True)
class Network:
    """A model's source text, and what it is called."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where a network's numbers come from: `wastes` are names of `WASTES`, and maybe `SHARED`."""

    draw: Random
    wastes: tuple[str, ...]

    def size(self, least: int, most: int) -> int:
        return self.draw.randint(least, most)

    def wasted(self, value: str) -> str:
        """The expression of a value, through all of the wastes."""
        own = [name for name in self.wastes if name != SHARED]
        for name in self.draw.sample(own, len(own)):
            value = f"{name}({value})"
        return value


Family = Callable[[Drawn], str]


def race(draw: Random, wastes: Sequence[str]) -> Iterator[Network]:
    """A network of each family."""
    return _networks(FAMILIES, Drawn(draw, tuple(wastes)))


def edges(draw: Random, accumulators: int) -> Iterator[Network]:
    """Networks without waste, whose sizes are those of the machine: one row, whole tiles, more rows than there are accumulators."""
    sizes = [(1, MXU, 2 * MXU), (accumulators + draw.randint(1, 7), 2 * MXU + 1, MXU)]
    for rows, inner, units in sizes:
        text = f'model edge(x: f32[{rows}, {inner}] in [-1.0, 1.0]):\n    return dense(relu(dense(x, {units}, "h")), 1, "out")\n'
        yield _network(f"{rows} rows of {inner}", text, draw)
    side = draw.randint(4, 5)
    text = f'model edge(x: f32[2, {side}, 3, {MXU}] in [-1.0, 1.0]):\n    return relu(conv(x, {MXU}, "h"))\n'
    yield _network(f"2 images of {side} × 3", text, draw)


def first(wastes: Sequence[str]) -> Network:
    """The first network of the handout, the same in every term but for its waste."""
    return next(_networks({"dense": dense}, Drawn(Random(1), tuple(wastes))))


def _networks(families: Mapping[str, Family], drawn: Drawn) -> Iterator[Network]:
    for name, family in families.items():
        yield _network(name, family(drawn), drawn.draw)


def _network(name: str, text: str, draw: Random) -> Network:
    wastes = "".join(f"def {waste}(x):\n    return {body}\n\n" for waste, body in WASTES.items() if f"{waste}(" in text)
    return Network(name, f"{_HEAD.format(seed=draw.randrange(1000))}{wastes}{text}")


def dense(drawn: Drawn) -> str:
    """Layers one after the other."""
    batch, inputs = drawn.size(17, 24), drawn.size(9, 16)
    units = drawn.size(9, 16), drawn.size(5, 13)
    return f"""\
model dense(x: f32[{batch}, {inputs}] in [-1.0, 1.0]):
    h = {drawn.wasted(f'relu(dense(x, {units[0]}, "h"))')}
    g = {drawn.wasted(f'relu(dense(h, {units[1]}, "g"))')}
    return dense(g, 3, "out")
"""


def residual(drawn: Drawn) -> str:
    """A way around a layer. With `twice`, the way around begins with the first layer once more."""
    batch, inputs, units = drawn.size(17, 24), drawn.size(9, 16), drawn.size(5, 12)
    around = f'relu(dense(x, {units}, "h"))' if SHARED in drawn.wastes else "h"
    return f"""\
model residual(x: f32[{batch}, {inputs}] in [-1.0, 1.0]):
    h = relu(dense(x, {units}, "h"))
    g = {drawn.wasted(f'relu(dense(h, {units}, "g"))')}
    return dense(g + {around}, 3, "out")
"""


def images(drawn: Drawn) -> str:
    """A convolution, and the average of each of its channels."""
    lines, columns, filters = drawn.size(4, 5), drawn.size(5, 7), drawn.size(4, 8)
    return f"""\
model images(x: f32[2, {lines}, {columns}, {drawn.size(2, 6)}] in [-1.0, 1.0]):
    h = {drawn.wasted(f'relu(conv(x, {filters}, "h"))')}
    return dense(global_avg_pool(h), 3, "out")
"""


def recurrent(drawn: Drawn) -> str:
    """Two steps of a network that remembers."""
    batch, inputs, units = drawn.size(9, 20), drawn.size(3, 8), drawn.size(5, 12)
    return f"""\
model recurrent(x: f32[{batch}, 2, {inputs}] in [-1.0, 1.0]):
    h = {drawn.wasted(f'relu(dense(x[:, 0], {units}, "x"))')}
    weight u: f32[{units}, {units}]
    h = {drawn.wasted(f'relu(dense(x[:, 1], {units}, "x") + h @ u)')}
    return dense(h, 3, "out")
"""


FAMILIES: Mapping[str, Family] = {"dense": dense, "residual": residual, "images": images, "recurrent": recurrent}
