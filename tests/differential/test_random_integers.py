"""Random programs whose integers the source quantises, moves and dequantises itself, on either side of the host's edge."""

from __future__ import annotations

import random

import pytest

import tpucc
from tests.support.cases import one_of
from tpucc.runtime.check import compare_with_reference, random_inputs

REALS = ("tanh({} @ a)", "{} @ a", "relu({})", "softmax({})", "{} + 0.5")
PARAMETERS = ("0.01, 28", "0.02, -3")
MOVES = (
    "concat([{0}[0:3], {0}[3:6]], axis=0)",
    "concat([{0}[2:6], {0}[0:2]], axis=0)",
    "concat([{0}[:, 1:6], {0}[:, 0:1]], axis=1)",
    "transpose({0}, [1, 0])",
    "reshape(reshape({0}, [3, 12]), [6, 6])",
)
BACK = ("dequantize({})", "dequantize({}) @ a", "dequantize({}) + x")
EACH = 20


def drawn(seed: int) -> str:
    """A source: real values and integers made from each other at random; some of both are results."""
    choose = random.Random(seed)
    reals, integers, lines = ["x"], list[str](), list[str]()
    for number in range(choose.randint(3, 9)):
        kinds = [(reals, REALS, reals), (reals, [f"quantize({{}}, {p})" for p in PARAMETERS], integers)]
        kinds += [(integers, MOVES, integers), (integers, BACK, reals)] if integers else []
        values, forms, made = choose.choice(kinds)
        lines.append(f"    v{number} = {choose.choice(forms).format(choose.choice(values))}")
        made.append(f"v{number}")
    results = dict.fromkeys([choose.choice(reals[1:] or integers), *choose.sample(integers, min(len(integers), choose.randint(0, 1)))])
    head = ["weights random(seed=1)", "model m(x: f32[6, 6]):", "    weight a: f32[6, 6]"]
    return "\n".join([*head, *lines, f"    return {', '.join(results)}\n"])


@pytest.mark.parametrize("first", one_of(30, range(0, 30 * EACH, EACH)))
def test_integers_of_the_source(first: int) -> None:
    compared = 0
    for seed in range(first, first + EACH):
        exe = tpucc.compile_source(drawn(seed), level=seed % 3)
        assert exe.compilation is not None
        assert exe.compilation.layers is not None
        found = compare_with_reference(exe.runtime, exe.compilation.layers, random_inputs(exe.runtime, seed))
        assert not [comparison for comparison in found if comparison.unequal], drawn(seed)
        compared += len(found)
    assert compared >= EACH // 2
