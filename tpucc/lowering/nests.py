"""The loops of a product: how all that it reads and what it makes are walked together."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.lowering.walks import Nest, nest
from tpucc.lowering.workload import Product, Step


@dataclass(frozen=True, slots=True)
class ProductNest:
    """The loops; tensor 0 of each is the result, and tensor `patterns[i]` what level i reads. Levels that advance alike share one."""

    loops: Nest
    patterns: tuple[int, ...]


def product_nest(step: Step) -> ProductNest:
    """The loops of a step whose work is a product."""
    assert isinstance(step.work, Product)
    ways = {step.y.steps: 0}
    patterns = tuple(ways.setdefault(level.x.steps, len(ways)) for level in step.work.levels)
    return ProductNest(nest(step.y.shape, tuple(ways)), patterns)
