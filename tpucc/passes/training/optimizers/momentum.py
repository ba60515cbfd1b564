"""momentum: gradient descent with a velocity, `v = decay * v + g` and `w - rate * v` (Polyak 1964; TensorFlow's MomentumOptimizer)."""

from __future__ import annotations

from tpucc.ops.gradient import Value
from tpucc.passes.training.optimizers.update import Update


def update(u: Update, *, rate: float, decay: float) -> Value:
    velocity = u.slots.slot("velocity")
    return u.weight - u.slots.move(velocity, velocity * decay + u.gradient) * rate
