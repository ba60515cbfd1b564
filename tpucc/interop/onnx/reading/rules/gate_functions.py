"""The functions in the gates of LSTM, GRU and RNN, with the numbers that `activation_alpha` and `activation_beta` give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted, listed
from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.files.problems import CHECKER, Unsupported
from tpucc.interop.onnx.reading.rules.elements import softplus
from tpucc.ir.node import Node


@dataclass(frozen=True)
class GateFunction:
    """A function by ONNX's name in small letters, and the values of those of its numbers, alpha and beta, that it has."""

    name: str
    numbers: tuple[float, ...]

    def of(self, net: Network, x: Node, name: str = "") -> Node:
        """The function's result; `name` is that of its node."""
        if (op := PLAIN.get(self.name)) is not None:
            return net.add(op, x, name=name or op)
        return COMPOSED[self.name].build(net, x, *self.numbers)


@dataclass(frozen=True)
class _Composed:
    """How a function is built, and the numbers that it has where the node gives none."""

    build: Callable[..., Node]
    defaults: tuple[float, ...] = ()


def gate_functions(c: Call, defaults: Sequence[str], directions: int) -> list[list[GateFunction]]:
    """The functions of each direction. Those that have numbers take them from the node's lists, in their order, as far as these go."""
    names = [str(name).lower() for name in c.attribute("activations") or [*defaults] * directions]
    if unknown := [name for name in names if name not in PLAIN and name not in COMPOSED]:
        raise Unsupported(f"the function {unknown[0]} inside", f"there are {listed(sorted((*PLAIN, *COMPOSED)))}")
    count = len(defaults)
    if len(names) != count * directions:
        raise Unsupported(f"{counted(len(names), 'function')} for {counted(directions, 'direction')} of {count}", CHECKER)
    given = [iter(numbers or ()) for numbers in (c.attribute("activation_alpha"), c.attribute("activation_beta"))]
    found = [GateFunction(name, _numbers(name, given)) for name in names]
    return [found[start : start + count] for start in range(0, len(found), count)]


def _numbers(name: str, given: Sequence[Iterator[float]]) -> tuple[float, ...]:
    defaults = COMPOSED[name].defaults if name in COMPOSED else ()
    return tuple(float(next(numbers, default)) for numbers, default in zip(given, defaults, strict=False))


def _affine(net: Network, x: Node, alpha: float, beta: float) -> Node:
    return net.add("add", net.add("mul", x, net.scalar(alpha)), net.scalar(beta))


def _elu(net: Network, x: Node, alpha: float) -> Node:
    return net.add("elu", x, alpha=alpha)


def _hard_sigmoid(net: Network, x: Node, alpha: float, beta: float) -> Node:
    return net.add("clip", _affine(net, x, alpha, beta), low=0.0, high=1.0)


def _leaky(net: Network, x: Node, alpha: float) -> Node:
    return net.add("leaky_relu", x, alpha=alpha)


def _scaled_tanh(net: Network, x: Node, alpha: float, beta: float) -> Node:
    return net.add("mul", net.add("tanh", net.add("mul", x, net.scalar(beta))), net.scalar(alpha))


def _softsign(net: Network, x: Node) -> Node:
    return net.add("div", x, net.add("add", net.add("abs", x), net.scalar(1.0)))


def _thresholded(net: Network, x: Node, alpha: float) -> Node:
    return net.add("where", net.add("greater", x, net.scalar(alpha)), x, net.scalar(0.0))


PLAIN: Mapping[str, str] = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}
COMPOSED: Mapping[str, _Composed] = {
    "affine": _Composed(_affine, (1.0, 0.0)),
    "elu": _Composed(_elu, (1.0,)),
    "hardsigmoid": _Composed(_hard_sigmoid, (0.2, 0.5)),
    "leakyrelu": _Composed(_leaky, (0.01,)),
    "scaledtanh": _Composed(_scaled_tanh, (1.0, 1.0)),
    "softplus": _Composed(softplus),
    "softsign": _Composed(_softsign),
    "thresholdedrelu": _Composed(_thresholded, (1.0,)),
}
"""ONNX's functions by name, and those that are no operator of ours as they are. The defaults are those of ONNX's operators."""
