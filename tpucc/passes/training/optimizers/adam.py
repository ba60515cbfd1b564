"""adam: moving means of the gradient and its square, corrected for their start at 0 (Kingma and Ba, arXiv 1412.6980).

The correction is made in the order that their section 2 ends with, which Keras has too:
`w - rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)`. The default of `epsilon` is that of their algorithm 1, which adds
it after `v` is corrected. Here it acts `1 / sqrt(1 - beta2^t)` times as strong: 31.6 times at the first step, which is
`rate * g / (|g| + 31.6 * epsilon)`.
"""

from __future__ import annotations

from tpucc.ops.gradient import Value
from tpucc.passes.training.optimizers.update import Update


def update(u: Update, *, rate: float, beta1: float, beta2: float, epsilon: float) -> Value:
    g, first, second = u.gradient, u.slots.slot("first"), u.slots.slot("second")
    m = u.slots.move(first, first * beta1 + g * (1.0 - beta1))
    v = u.slots.move(second, second * beta2 + g * g * (1.0 - beta2))
    step = rate * (1.0 - u.slots.power("beta2", beta2)).call("sqrt") / (1.0 - u.slots.power("beta1", beta1))
    return u.weight - m * step / (v.call("sqrt") + epsilon)
