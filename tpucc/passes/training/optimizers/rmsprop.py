"""rmsprop: the gradient by the root of its moving mean square (Tieleman and Hinton 2012; TensorFlow's RMSProp, epsilon under the root).

`s = decay * s + (1 - decay) * g * g`, `v = momentum * v + rate * g / sqrt(s + epsilon)`, and `w - v`.
"""

from __future__ import annotations

from tpucc.ops.gradient import Value
from tpucc.passes.training.optimizers.update import Update


def update(u: Update, *, rate: float, decay: float, momentum: float, epsilon: float) -> Value:
    squares = u.slots.slot("squares")
    mean = u.slots.move(squares, squares * decay + u.gradient * u.gradient * (1.0 - decay))
    change = u.gradient * rate / (mean + epsilon).call("sqrt")
    if momentum == 0.0:
        return u.weight - change
    velocity = u.slots.slot("velocity")
    return u.weight - u.slots.move(velocity, velocity * momentum + change)
