"""sgd: stochastic gradient descent, `w - rate * g`."""

from __future__ import annotations

from tpucc.ops.gradient import Value
from tpucc.passes.training.optimizers.update import Update


def update(u: Update, *, rate: float) -> Value:
    return u.weight - u.gradient * rate
