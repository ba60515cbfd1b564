"""The fact `products` beside what an operator's float form asks of the arithmetic."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tpucc.floating.arithmetic import Arithmetic
from tpucc.numerics import Float32
from tpucc.ops import OPS
from tpucc.ops.facts import Product
from tpucc.ops.opdef import Defined, Example, OpDef

CASES = [
    pytest.param(operator, example, id=f"{name}-{example.title}")
    for name, operator in OPS.items()
    if isinstance(operator.floats, Defined)
    for example in operator.examples
]


class Recording(Arithmetic):
    """Keeps the sizes of the products that it is asked for."""

    name = "recording"

    def __init__(self) -> None:
        self.found: list[Product] = []

    def product(self, a: Float32, b: Float32) -> Float32:
        self.found.append(Product(a.shape[0], *b.shape))
        return np.zeros((a.shape[0], b.shape[1]), np.float32)

    def products(self, a: Float32, b: Float32) -> Float32:
        return np.stack([self.product(left, right) for left, right in zip(a, b, strict=True)])


@pytest.mark.parametrize(("operator", "example"), CASES)
def test_products_are_those_that_the_float_form_computes(operator: OpDef, example: Example) -> None:
    recording = Recording()
    operands = [np.zeros(type_.shape, type_.numpy) for type_ in example.operands]
    with np.errstate(all="ignore"):
        operator.floats.function(example.attributes, operands, recording)  # type: ignore[union-attr]
    expected: Counter[Product] = Counter()
    for product in operator.facts.products(example.attributes, [type_.shape for type_ in example.operands]):
        expected[product._replace(times=1, patches=None)] += product.times
        if product.patches is not None:
            rows, lines, pixels, channels = product.patches
            assert (rows, lines * pixels * channels) in ((product.rows, product.depth), (product.depth, product.rows))
    assert Counter(recording.found) == expected
