"""The optimizers: each a function that writes the new value of one state as operators.

`OPTIMIZERS` maps the language's name to the function. Its keyword arguments are the optimizer's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from tpucc.ops.gradient import Value


class Update(Protocol):
    """What an optimizer's function gets: one state with its gradient, of one shape, and slots, which are states of the optimizer's own."""

    weight: Value
    gradient: Value

    def slot(self, name: str) -> Value:
        """An array of the weight's shape, zeros before the first step."""
        ...

    def move(self, slot: Value, to: Value) -> Value:
        """Gives a slot its value after the step, which is returned."""
        ...

    def power(self, name: str, base: float) -> Value:
        """`base` to the power of the number of this step, counted from 1; one value for all weights."""
        ...


def sgd(u: Update, *, rate: float) -> Value:
    """Stochastic gradient descent, `w - rate * g`."""
    return u.weight - u.gradient * rate


def momentum(u: Update, *, rate: float, decay: float) -> Value:
    """Gradient descent with a velocity, `v = decay * v + g` and `w - rate * v` (Polyak 1964; TensorFlow's MomentumOptimizer)."""
    velocity = u.slot("velocity")
    return u.weight - u.move(velocity, velocity * decay + u.gradient) * rate


def rmsprop(u: Update, *, rate: float, decay: float, momentum: float, epsilon: float) -> Value:
    """The gradient by the root of its moving mean square (Tieleman and Hinton 2012; TensorFlow's RMSProp, epsilon under the root).

    `s = decay * s + (1 - decay) * g * g`, `v = momentum * v + rate * g / sqrt(s + epsilon)`, and `w - v`.
    """
    squares = u.slot("squares")
    mean = u.move(squares, squares * decay + u.gradient * u.gradient * (1.0 - decay))
    change = u.gradient * rate / (mean + epsilon).call("sqrt")
    if momentum == 0.0:
        return u.weight - change
    velocity = u.slot("velocity")
    return u.weight - u.move(velocity, velocity * momentum + change)


def adam(u: Update, *, rate: float, beta1: float, beta2: float, epsilon: float) -> Value:
    """Moving means of the gradient and its square, corrected for their start at 0 (Kingma and Ba, arXiv 1412.6980).

    The correction is made in the order that their section 2 ends with, which Keras has too:
    `w - rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)`. The default of `epsilon` is that of their algorithm 1, which
    adds it after `v` is corrected. Here it acts `1 / sqrt(1 - beta2^t)` times as strong: 31.6 times at the first step, which is
    `rate * g / (|g| + 31.6 * epsilon)`.
    """
    g, first, second = u.gradient, u.slot("first"), u.slot("second")
    m = u.move(first, first * beta1 + g * (1.0 - beta1))
    v = u.move(second, second * beta2 + g * g * (1.0 - beta2))
    step = rate * (1.0 - u.power("beta2", beta2)).call("sqrt") / (1.0 - u.power("beta1", beta1))
    return u.weight - m * step / (v.call("sqrt") + epsilon)


OPTIMIZERS: Mapping[str, Callable[..., Value]] = MappingProxyType({"sgd": sgd, "momentum": momentum, "rmsprop": rmsprop, "adam": adam})
