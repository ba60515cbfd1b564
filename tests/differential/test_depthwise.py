"""Depthwise convolutions by the vector unit: the integers of the matrix unit, on machines of any size, by both executors.

Random networks with strides, dilations, paddings, branches and channels past one column block equal the layers' integer reference bit for
bit, whichever unit computes them, and read back from every text form.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest

import tpucc
from tests.differential.test_random_networks import MACHINES, MEMORIES, odd
from tests.support.seeds import at_length
from tpucc.api import Executable
from tpucc.driver import SPARING
from tpucc.isa.verify import verify
from tpucc.machines.v1 import V1, Function, Opcode
from tpucc.numerics import INT32_MAX, AnyArray
from tpucc.runtime.check import compare_executors, compare_with_reference, random_inputs
from tpucc.sim.timing import time_program
from tpucc.target import Target, load_target

PER_TEST = 9
BLOCK = """
weights random(seed=4)
model m(x: f32[4, 14, 14, 96] in [-1.0, 1.0]):
    weight w: f32[3, 3, 1, 96]
    weight b: f32[96]
    return relu6(conv2d(x, w, stride=2, padding="same", groups=96) + b)
"""


def network(seed: int) -> str:
    """A source with one to three depthwise convolutions, some of them between convolutions of 1×1."""
    draw = random.Random(seed)
    images, height, width = draw.randint(1, 4), draw.randint(3, 9), draw.randint(3, 9)
    channels = draw.choice((1, 2, 3, 5, 17))
    lines, value = [f"model m(x: f32[{images}, {height}, {width}, {channels}] in [-2.0, 2.0]):"], "x"
    for number in range(draw.randint(1, 3)):
        rows, columns, dilation = draw.randint(1, 3), draw.randint(1, 3), (draw.choice((1, 1, 2)), draw.choice((1, 1, 2)))
        sides = [draw.randint(0, 2) for _ in range(4)]
        down, across = (rows - 1) * dilation[0] + 1, (columns - 1) * dilation[1] + 1
        if min(height + sides[0] + sides[1] - down, width + sides[2] + sides[3] - across) < 0:
            sides = [max(dilation)] * 4
        stride = draw.randint(1, 2), draw.randint(1, 2)
        if draw.random() < 0.4:
            wider = draw.choice((3, 8, 33))
            lines += [f"weight p{number}: f32[1, 1, {channels}, {wider}]", f"v{number} = {value}"]
            lines.append(f"u{number} = relu(conv2d(v{number}, p{number}))")
            value, channels = f"u{number}", wider
        lines.append(f"weight w{number}: f32[{rows}, {columns}, 1, {channels}]")
        call = f"conv2d({value}, w{number}, stride={stride}, padding={tuple(sides)}, dilation={dilation}, groups={channels})"
        if draw.random() < 0.6:
            lines.append(f"weight b{number}: f32[{channels}]")
            call = f"({call} + b{number})"
        lines.append(f"h{number} = {draw.choice(['{}', 'relu({})', 'relu6({})', 'tanh({})']).format(call)}")
        value = f"h{number}"
        height = (height + sides[0] + sides[1] - down) // stride[0] + 1
        width = (width + sides[2] + sides[3] - across) // stride[1] + 1
    lines.append(f"return {value}")
    return "weights random(seed=1)\n" + "\n    ".join(lines) + "\n"


def compiled(source: str, unit: str = "cheaper", target: Target | str = "tpu_v1", **options: object) -> Executable:
    return tpucc.compile_source(source, target=target, settings={"depthwise": {"unit": unit}}, **options)  # type: ignore[arg-type]


def fitting(source: str, unit: str, target: Target, level: int) -> Executable | None:
    """The compiled source; None when it doesn't fit the machine's memories."""
    try:
        return compiled(source, unit, target, level=level)
    except tpucc.Error as error:
        if any(d.code not in MEMORIES for d in error.diagnostics):
            raise AssertionError(f"{error}\n{source}") from error
        return None


def weighted(exe: Executable) -> int:
    """How many instructions compute weighted sums."""
    code = exe.program.instructions
    return int(((code["opcode"] == Opcode.POOL) & (code["function"] == Function.WEIGHTED)).sum())


def results(exe: Executable, seed: int) -> list[AnyArray]:
    """What both executors and the layers' reference agree on."""
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    inputs = random_inputs(exe.runtime, seed)
    compared = compare_with_reference(exe.runtime, exe.compilation.layers, inputs) + compare_executors(exe.runtime, inputs)
    assert compared
    assert not [c for c in compared if c.unequal], f"{compared}\n{exe.compilation.source.text}"
    return list(exe.run(inputs).values())


def check_all(seeds: range) -> None:
    """The vector unit computes them all, but for a first layer of one channel, which is a convolution of patches; all fit TPU v1."""
    for seed in seeds:
        target = (odd(seed), MACHINES["middle"].target, load_target("tpu_v1"))[seed % 3]
        vector, matrix = (fitting(network(seed), unit, target, 1 + seed % 2) for unit in ("vector", "matrix"))
        assert target.name != "tpu_v1" or (vector and matrix), f"seed {seed}"
        if vector is None:
            chosen = fitting(network(seed), "cheaper", target, 1 + seed % 2)
            assert (chosen is None) is (matrix is None), "the choice refuses no network that one of the units can do"
            continue
        assert weighted(vector) or set(re.findall(r"groups=(\d+)", network(seed))) == {"1"}, f"seed {seed}"
        found = results(vector, seed)
        if matrix is not None:
            assert weighted(matrix) == 0
            for a, b in zip(found, results(matrix, seed), strict=True):
                np.testing.assert_array_equal(a, b)


def test_both_units_give_the_same_integers() -> None:
    check_all(range(PER_TEST))


@at_length(1_500, 30)
def test_both_units_give_the_same_integers_at_length(seeds: range) -> None:
    check_all(seeds)


@pytest.mark.parametrize(
    ("images", "latency", "unit"), [(4, 1e-6, "vector"), (40, 1e-8, "vector"), (40, 2e-5, "matrix")], ids=["tiles", "drain", "link"]
)
def test_the_cheaper_unit_is_the_faster_one(images: int, latency: float, unit: str) -> None:
    """A tile of TPU v1 takes 1,349 cycles to fetch, which is longer than its use where there are few images of 49 pixels. Of many, the
    last sums leave the matrix unit in 2,472 cycles. With a latency of 14,000 cycles the rows of weights take longer than that to cross."""
    source, numbers = BLOCK.replace("f32[4,", f"f32[{images},"), {"host_bandwidth": 1e12, "host_latency_seconds": latency}
    chosen = compiled(source, overrides=numbers)
    cycles = {way: compiled(source, way, overrides=numbers).stats["cycles"] for way in ("vector", "matrix")}
    assert (weighted(chosen) > 0) is (unit == "vector")
    assert chosen.stats["cycles"] == cycles[unit] == min(cycles.values())


@pytest.mark.parametrize("seed", [22, 34, 124])
def test_a_map_that_the_vector_unit_has_no_room_for_is_its_in_bands_where_it_is_asked_for(seed: int) -> None:
    """On small machines an image, its result and the rows of weights take more than the unified buffer together."""
    source, machine = network(seed), odd(seed)
    asked, chosen = (fitting(source, unit, machine, 1 + seed % 2) for unit in ("vector", "cheaper"))
    assert asked is not None
    assert chosen is not None
    assert SPARING in asked.notes
    assert SPARING not in chosen.notes
    assert weighted(asked) > weighted(chosen)
    results(asked, seed)
    results(chosen, seed)


def test_the_note_says_whether_the_unit_was_asked_for_and_that_it_estimates() -> None:
    cheaper, asked = ([note for note in compiled(BLOCK, unit).notes if "depthwise" in note] for unit in ("cheaper", "vector"))
    estimate = "relu6 (line 6) takes about 2,614 cycles there. The matrix unit would take 12,849."
    assert cheaper == [f"the activation unit computes 1 depthwise convolution: {estimate}"]
    assert asked == [f"the activation unit computes 1 depthwise convolution, as asked: {estimate}"]


def test_products_of_the_vector_unit_are_the_models_but_not_the_arrays() -> None:
    stats, other = compiled(BLOCK, "vector").stats, compiled(BLOCK, "matrix").stats
    assert stats["macs"] == other["macs"] == 4 * 49 * 9 * 96
    assert [layer["macs"] for layer in stats["layers"] if layer["macs"]] == [stats["macs"]]
    assert (stats["tiles"], stats["weight_bytes"]) == (0, 0)
    assert stats["breakdown"]["useful_macs"] == stats["breakdown"]["array_active"] == 0
    assert other["breakdown"]["useful_macs"] > 0


def test_one_instruction_takes_a_cycle_for_each_row_of_its_windows() -> None:
    exe = compiled(BLOCK, "vector", level=1)
    timeline, code = time_program(exe.program.value), exe.program.instructions
    pools = code["opcode"] == Opcode.POOL
    cycles = (timeline.end - timeline.start)[pools]
    assert cycles.sum() == 4 * 49 * 9
    assert "computes the sum of each window's rows times rows of weights" in str(V1.read(code[pools][0]))


def test_cores_divide_the_batch() -> None:
    one, two = compiled(BLOCK, "vector"), compiled(BLOCK, "vector", cores=2)
    inputs = random_inputs(one.runtime, 3)
    for name, value in one.run(inputs).items():
        np.testing.assert_array_equal(two.run(inputs)[name], value)


def test_every_text_form_reads_back() -> None:
    exe = compiled(BLOCK, "vector")
    for form in (exe.layers, exe.tiles, exe.program):
        assert tpucc.resume(form, like=exe).program.value == exe.program.value


def test_sixteen_bits_and_filters_that_share_a_channel_stay_with_the_matrix_unit() -> None:
    assert weighted(compiled("activations i16\n" + BLOCK, "vector")) == 0
    shared = BLOCK.replace("f32[3, 3, 1, 96]", "f32[3, 3, 1, 192]").replace("b: f32[96]", "b: f32[192]")
    assert weighted(compiled(shared, "vector")) == 0


def test_the_verifier_bounds_the_sums() -> None:
    """Nine products of int8 values are at most 147,456."""
    program = compiled(BLOCK, "vector").program.value
    for bias, codes in ((INT32_MAX - 9 * 2**14, set()), (INT32_MAX - 9 * 2**14 + 1, {"V0901"})):
        blocks = program.blocks.copy()
        blocks["bias"][:, 0] = bias
        assert {violation.code for violation in verify(replace(program, blocks=blocks))} == codes


def test_a_layer_that_the_vector_unit_cannot_compute_is_refused() -> None:
    layers = str(compiled(BLOCK, "vector").layers)
    assert 'unit="vector"' in layers
    for old, new, message in (
        ('unit="vector"', 'unit="host"', "unit must be 'matrix' or 'vector'"),
        ("groups=96", "groups=48", "under the kernel"),
    ):
        with pytest.raises(tpucc.Error, match=message):
            tpucc.resume(layers.replace(old, new), like=compiled(BLOCK, "vector"))


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(tpucc.UsageError, match="no way to compute depthwise convolutions is named fast"):
        compiled(BLOCK, "fast")
