"""Products of two computed values: by the matrix unit, whose weights the host writes, and by the host.

Random networks around such products, with batch dimensions that broadcast on either side, and around convolutions with computed kernels,
equal the layers' integer reference bit for bit on machines of any size, by both executors, and read back from every text form.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import tpucc
from tests.differential.test_random_networks import MACHINES, MEMORIES, odd
from tests.support.seeds import at_length
from tpucc.api import Executable
from tpucc.isa.verify import verify
from tpucc.layers.kinds import is_layer
from tpucc.machines.v1 import Opcode
from tpucc.runtime.check import compare_executors, compare_with_reference, float_reference, random_inputs
from tpucc.target import Target, load_target

BY_DEVICE = {"write-weights": {"computed_products": "device"}}
PER_TEST = 12
ATTENTION = """
param batch = 2
weights random(seed=7)
model attention(x: f32[batch, 4, 12]):
    weight wq: f32[12, 12] = "q.w"
    weight wk: f32[12, 12] = "k.w"
    weight wv: f32[12, 12] = "v.w"
    weight wo: f32[12, 12] = "o.w"
    q = transpose(reshape(x @ wq, (batch, 4, 3, 4)), (0, 2, 1, 3))
    k = transpose(reshape(x @ wk, (batch, 4, 3, 4)), (0, 2, 3, 1))
    v = transpose(reshape(x @ wv, (batch, 4, 3, 4)), (0, 2, 1, 3))
    mixed = softmax(q @ k * 0.5) @ v
    return reshape(transpose(mixed, (0, 2, 1, 3)), (batch, 4, 12)) @ wo + x
"""
"""Three heads, as in a vision transformer."""


def network(seed: int) -> str:
    """A source with one to three products of computed values, on shapes from 1 up, their batch dimensions on either side or both."""
    draw = random.Random(seed)
    lines: list[str] = []
    lead = [draw.randint(1, 3) for _ in range(draw.randint(0, 2))]
    m, k = draw.randint(1, 7), draw.randint(1, 9)
    inputs = [f"x: f32{_shape([*lead, m, k])}"]
    value, width = "x", k
    for number in range(draw.randint(1, 3)):
        n = draw.randint(1, 9)
        right = _right(draw, lead)
        if draw.random() < 0.5 and right == lead and m > 1:
            lines += [f'weight w{number}: f32[{width}, {n}] = "w{number}"', f"k{number} = {value} @ w{number}"]
            swap = (*range(len(lead)), len(lead) + 1, len(lead))
            lines.append(f"h{number} = {_left(draw, lines, number, value, width, n)} @ transpose(k{number}, {swap})")
            width = m
        else:
            inputs.append(f"y{number}: f32{_shape([*right, width, n])}")
            lines.append(f"h{number} = {value} @ {draw.choice(['{}', 'relu({})', 'softmax({})']).format(f'y{number}')}")
            width = n
        value = draw.choice(["h{}", "relu(h{})", "softmax(h{})", "(h{} * 0.5)", "(h{} + 1.5)", "tanh(h{})"]).format(number)
        lead = lead or right
    lines.append(f"return {value}")
    body = "\n    ".join(lines)
    return f"weights random(seed={seed})\nmodel net({', '.join(inputs)}):\n    {body}\n"


def convolution(seed: int) -> str:
    """A source with a convolution by a computed kernel between two others: ragged, with strides, dilation, padding and groups."""
    draw = random.Random(seed)
    groups = draw.choice([1, 1, 2, 3])
    c, f = groups * draw.randint(1, 3), groups * draw.randint(1, 3)
    r, s = draw.randint(1, 3), draw.randint(1, 3)
    steps = {
        "stride": (draw.randint(1, 2), draw.randint(1, 3)),
        "padding": draw.choice(['"same"', '"valid"', (draw.randint(0, 2), 1, 0, 2)]),
        "dilation": (draw.randint(1, 2), 1),
        "groups": groups,
    }
    called = ", ".join(f"{name}={value}" for name, value in steps.items())
    k = draw.choice([f"tanh(reshape(z @ g, ({r}, {s}, {c // groups}, {f})))", f"reshape(z @ g, ({r}, {s}, {c // groups}, {f}))"])
    return f"""
weights random(seed={seed})
model net(x: f32[{draw.randint(1, 2)}, {draw.randint(5, 7)}, {draw.randint(5, 8)}, 3], z: f32[{r * s}, 4]):
    weight g: f32[4, {c // groups * f}]
    weight w: f32[1, 1, 3, {c}]
    weight v: f32[1, 1, {f}, 2]
    h = relu(conv2d(x, w))
    y = relu(conv2d(h, {k}, {called}))
    return conv2d(y, v)
"""


def _right(draw: random.Random, lead: Sequence[int]) -> list[int]:
    """Batch dimensions that broadcast to those on the left, or none; where the left has none, any."""
    if not lead:
        return [draw.randint(1, 3) for _ in range(draw.randint(0, 2))]
    return [] if draw.random() < 0.2 else [draw.choice([size, size, 1]) for size in lead[draw.randint(0, len(lead) - 1) :]]


def _left(draw: random.Random, lines: list[str], number: int, value: str, width: int, n: int) -> str:
    lines.append(f'weight v{number}: f32[{width}, {n}] = "v{number}"')
    return f"({value} @ v{number})"


def _shape(sizes: Sequence[int]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def compiled(source: str, target: Target | str = "tiny", **options: object) -> Executable:
    return tpucc.compile_source(source, target=target, settings=BY_DEVICE, **options)  # type: ignore[arg-type]


def fitting(source: str, target: Target, level: int) -> Executable | None:
    """The compiled source; None when it doesn't fit the machine's memories."""
    try:
        return compiled(source, target, level=level)
    except tpucc.Error as error:
        if any(d.code not in MEMORIES for d in error.diagnostics):
            raise AssertionError(f"{error}\n{source}") from error
        return None


def equal(exe: Executable, seed: int) -> None:
    """Both executors give the reference's integers."""
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    inputs = random_inputs(exe.runtime, seed)
    compared = compare_with_reference(exe.runtime, exe.compilation.layers, inputs) + compare_executors(exe.runtime, inputs)
    assert compared or not any(is_layer(node) for node in exe.compilation.layers), "a small one may be the host's alone"
    assert not [c for c in compared if c.unequal], f"{compared}\n{exe.compilation.source.text}"


def check_all(seeds: range, source: Callable[[int], str] = network) -> None:
    """The host writes the right sides, save where a small machine has no room for both sides; all fit TPU v1."""
    for seed in seeds:
        target = (odd(seed), MACHINES["middle"].target, load_target("tpu_v1"))[seed % 3]
        exe = fitting(source(seed), target, level=1 + seed % 2)
        assert exe or target.name != "tpu_v1", f"seed {seed}"
        if exe is not None:
            assert exe.program.written_tiles or target.name == "odd", f"seed {seed}"
            equal(exe, seed)


def test_networks_of_computed_products_equal_the_reference() -> None:
    check_all(range(PER_TEST))


@at_length(2_000, 100)
def test_networks_of_computed_products_equal_the_reference_at_length(seeds: range) -> None:
    check_all(seeds)


def test_convolutions_with_computed_kernels_equal_the_reference() -> None:
    check_all(range(PER_TEST), convolution)


@at_length(2_000, 100)
def test_convolutions_with_computed_kernels_equal_the_reference_at_length(seeds: range) -> None:
    check_all(seeds, convolution)


def test_the_host_computes_a_convolution_with_a_computed_kernel_without_the_pass() -> None:
    for seed in range(3):
        equal(tpucc.compile_source(convolution(seed), omit=("computed-kernels",)), seed)


@pytest.mark.parametrize("target", ["tiny", "tpu_v1"])
def test_attention_by_the_matrix_unit_means_what_the_source_says(target: str) -> None:
    exe = compiled(ATTENTION, target)
    assert [layer.name for layer in exe.program.layers if layer.kind == "fc" and "." not in layer.name].count("mixed") == 1
    equal(exe, 1)
    inputs = random_inputs(exe.runtime, 1)
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    (meant,), (found,) = float_reference(exe.compilation.graph, inputs).values(), exe.run(inputs).values()
    assert np.sqrt(np.mean((meant - found) ** 2)) < 0.05 * meant.std()


def test_cores_divide_the_batch_of_both_sides() -> None:
    one, two = compiled(ATTENTION), compiled(ATTENTION, cores=2)
    inputs = random_inputs(one.runtime, 3)
    assert one.program.written_tiles == 2 * two.program.written_tiles
    for name, value in one.run(inputs).items():
        np.testing.assert_array_equal(two.run(inputs)[name], value)


def test_every_text_form_reads_back() -> None:
    exe = compiled(ATTENTION)
    assert exe.compilation is not None
    for form in (exe.layers, exe.tiles, exe.program):
        assert tpucc.resume(form, like=exe).program.value == exe.program.value


def test_the_hosts_bytes_are_those_of_the_tiles_rows_too() -> None:
    """Six matrices for q @ k and six for softmax @ v, each a tile of 4 rows."""
    exe, other = compiled(ATTENTION), tpucc.compile_source(ATTENTION, target="tiny", omit=("write-weights",))
    code = exe.program.instructions
    writes = code[code["opcode"] == Opcode.WRITE_WEIGHTS]
    assert len(writes) == exe.program.written_tiles == 12
    assert writes["inner"].sum() == 12 * 4
    assert not other.program.written_tiles
    assert exe.stats["tiles"] == other.stats["tiles"] + 12
    assert verify(exe.program.value) == ()
