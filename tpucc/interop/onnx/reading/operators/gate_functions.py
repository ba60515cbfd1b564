"""The functions in the gates of LSTM, GRU and RNN, with the numbers that `activation_alpha` and `activation_beta` give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted, did_you_mean, listed
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.files.problems import Damaged, shortened
from tpucc.interop.onnx.reading.operators.elements import clipped_affine, softplus, softsign, thresholded
from tpucc.ir import Node


@dataclass(frozen=True)
class GateFunction:
    """A function by ONNX's name in small letters, and the values of those of its numbers, alpha and beta, that it has."""

    name: str
    numbers: tuple[float, ...]

    def of(self, net: Network, x: Node, name: str = "") -> Node:
        """The function's result; `name` is that of its node."""
        if self.name in PLAIN:
            return net.add(self.name, x, name=name or self.name)
        return COMPOSED[self.name].build(net, x, *self.numbers)


@dataclass(frozen=True)
class _Composed:
    """How a function is built, its name in ONNX, and the numbers that it has where the node gives none."""

    name: str
    build: Callable[..., Node]
    defaults: tuple[float, ...] = ()


def gate_functions(
    activations: Sequence[str], alphas: Sequence[float], betas: Sequence[float], defaults: Sequence[str], directions: int
) -> list[list[GateFunction]]:
    """The functions of each direction. Those that have numbers take them from the node's lists, in their order, as far as these go."""
    count = len(defaults)
    if activations and len(activations) < count * directions:
        raise Damaged(f"it has {counted(len(activations), 'function')}, and {counted(directions, 'direction')} of it {count * directions}")
    known = [*PLAIN.values(), *(function.name for function in COMPOSED.values())]
    for wrong in activations:
        if wrong.lower() not in {name.lower() for name in known}:
            raise Damaged(f"activations has {shortened(wrong)}, and ONNX has {listed(sorted(known), 'or')}", did_you_mean(wrong, known))
    names = [name.lower() for name in activations or [*defaults] * directions]
    given = [iter(alphas), iter(betas)]
    found = [GateFunction(name, _numbers(name, given)) for name in names]
    return [found[start : start + count] for start in range(0, count * directions, count)]


def _numbers(name: str, given: Sequence[Iterator[float]]) -> tuple[float, ...]:
    defaults = COMPOSED[name].defaults if name in COMPOSED else ()
    return tuple(float(next(numbers, default)) for numbers, default in zip(given, defaults, strict=False))


def _affine(net: Network, x: Node, alpha: float, beta: float) -> Node:
    return net.add("add", net.add("mul", x, net.scalar(alpha)), net.scalar(beta))


def _elu(net: Network, x: Node, alpha: float) -> Node:
    return net.add("elu", x, alpha=alpha)


def _leaky(net: Network, x: Node, alpha: float) -> Node:
    return net.add("leaky_relu", x, alpha=alpha)


def _scaled_tanh(net: Network, x: Node, alpha: float, beta: float) -> Node:
    return net.add("mul", net.add("tanh", net.add("mul", x, net.scalar(beta))), net.scalar(alpha))


PLAIN: Mapping[str, str] = {name.lower(): name for name in ("Relu", "Sigmoid", "Tanh")}
"""ONNX's functions, by their names as operators of tpucc."""
_FUNCTIONS = (
    _Composed("Affine", _affine, (1.0, 0.0)),
    _Composed("Elu", _elu, (1.0,)),
    _Composed("HardSigmoid", clipped_affine, (0.2, 0.5)),
    _Composed("LeakyRelu", _leaky, (0.01,)),
    _Composed("ScaledTanh", _scaled_tanh, (1.0, 1.0)),
    _Composed("Softplus", softplus),
    _Composed("Softsign", softsign),
    _Composed("ThresholdedRelu", thresholded, (1.0,)),
)
COMPOSED: Mapping[str, _Composed] = {function.name.lower(): function for function in _FUNCTIONS}
"""ONNX's functions by name, and those that are no operator of tpucc as they are. The defaults are those of ONNX's operators."""
